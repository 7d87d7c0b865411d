"""Tables computed anew from the command they state, and what is found of those that were touched."""

import csv
import json

import pytest

import hwmodel as package
from hwmodel.rerun.tables import read_csv
from hwmodel.specs.trace import read_trace, write_trace
from tests.specs import CHIP, GREEDY, NETWORK, unsaid, written
from tests.traces import trace

MADE = "version,inputs_sha256,command"
SAME = f"made by hwmodel {package.__version__}, as now\ninputs are as they were\n"
COMPARE = (
    "compare",
    "net.yaml",
    "--accounting",
    "paper",
    "--hardware",
    "chip.yaml",
    "--methods",
    "fp,bold",
)
REPORT = (
    "report",
    "net.yaml",
    "--accounting",
    "paper",
    "--hardware",
    "chip.yaml",
    "--method",
    "bold",
)


@pytest.fixture
def table(hwmodel, tmp_path):
    """A function that makes a table of a chip and a network of one's own."""
    written(tmp_path, CHIP, name="chip.yaml")
    written(tmp_path, NETWORK, name="net.yaml")

    def make(*arguments, name="t.csv"):
        code, _, err = hwmodel(*arguments, "-o", name)
        assert code in (0, 1), err
        return tmp_path / name

    return make


def edited(path, change):
    """The table of a CSV after a change to its records."""
    records = [dict(record) for record in read_csv(path)[1]]
    records = change(records) or records
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(records[0]))
        writer.writeheader()
        writer.writerows(records)


@pytest.mark.parametrize(("times", "told"), [(1.0004, True), (1.04, False)])
def test_little_moves_may_be_of_searches_that_are_compiled_or_not(hwmodel, table, times, told):
    path = table(*COMPARE)
    _, rows = read_csv(path)
    energy = rows[0]["energy"]
    text = path.read_text().replace(f",{energy},", f",{float(energy) * times!r},", 1)
    path.write_text(text)
    code, out, _ = hwmodel("verify", path)
    assert (code, "--tolerance 0.005 lets that pass" in out) == (1, told)
    assert hwmodel("verify", path, "--tolerance", "0.005")[0] == (0 if told else 1)


@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
@pytest.mark.parametrize(
    ("arguments", "rows"),
    [
        (COMPARE, 2),
        ((*COMPARE, "--baseline", "bold", "--batch", "3", "--mode", "inference"), 2),
        (
            (
                *unsaid(COMPARE),
                "--accounting",
                "paper,full",
                "--training",
                "cifar10-300",
                "--batch",
                "2",
            ),
            4,
        ),
        ((*COMPARE, "--date"), 2),
        ((*unsaid(REPORT), "--accounting", "full"), None),
    ],
)
def test_a_table_that_nobody_touched_holds(hwmodel, table, arguments, rows, ending):
    path = table(*arguments, name=f"t.{ending}")
    code, out, err = hwmodel("verify", path)
    assert code == 0
    assert err.startswith(f"computing anew: hwmodel {arguments[0]} net.yaml --hardware chip.yaml ")
    if rows is None:
        rows = len(read_csv(table(*arguments))[1])
        assert rows > 50
    assert out == f"{rows} rows equal, 0 moved, 0 missing, 0 extra\n{SAME}"


def test_a_reproduction_holds(hwmodel, table):
    path = table("reproduce", "cifar10_vgg_small", "--accounting", "paper")
    code, out, _ = hwmodel("verify", path)
    assert (code, out) == (0, f"12 rows equal, 0 moved, 0 missing, 0 extra\n{SAME}")


SWEPT = """version: 1
name: swept
title: Two memories, three widths
network: net.yaml
hardware: [chip.yaml, v100]
method: [fp, bold]
accounting: paper
baseline: fp
axes:
  - hardware.arithmetic.mac.32: {times: [1, 2]}
  - accounting.counting.first_layer_input_gradient: [false, true]
"""


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_sweep_holds_and_a_point_that_somebody_changed_is_found(hwmodel, table, tmp_path, ending):
    table(*COMPARE)  # and its inputs
    written(tmp_path, SWEPT, name="swept.yaml")
    assert hwmodel("sweep", "swept.yaml", "--out", f"s.{ending}", "--jobs", 1)[0] == 0
    before = sorted(p.name for p in tmp_path.iterdir())
    assert hwmodel("verify", f"s.{ending}") == (
        0, f"16 rows equal, 0 moved, 0 missing, 0 extra\n{SAME}",
        "computing anew: hwmodel sweep swept.yaml\n",
    )  # fmt: skip
    assert sorted(p.name for p in tmp_path.iterdir()) == before
    if ending == "csv":
        edited(tmp_path / "s.csv", lambda records: records[5].update(energy="1"))
        code, out, _ = hwmodel("verify", "s.csv")
        assert (code, out.splitlines()[1].startswith("moved: 5: energy 1 -> ")) == (1, True)
        written(tmp_path, SWEPT, ("[1, 2]", "[1, 3]"), name="swept.yaml")
        code, out, _ = hwmodel("verify", "s.csv")
        assert code == 1 and "input differs: sweep swept" in out


STUDY = (
    "sensitivity",
    "net.yaml",
    "--accounting",
    "paper",
    "--hardware",
    "chip.yaml",
    "--methods",
    "fp,bold",
)


def test_both_tables_of_a_study_hold_and_so_do_its_draws(hwmodel, table, tmp_path):
    table(*COMPARE)  # and its inputs
    written(tmp_path, "accounting.extras.flip_rate: [0.001, 0.1]\n", name="ranges.yaml")
    more = ("--samples", 3, "--seed", 5, "--ranges", "ranges.yaml", "--jobs", 1)
    own = written(tmp_path, GREEDY, name="greedy.yaml")
    assert hwmodel(*unsaid(STUDY), *more, "--accounting", own, "--out", "s")[0] == 0
    for name, rows in (("", None), ("_samples", 2)):
        (path,) = (tmp_path / "s").glob(f"sensitivity_net_chip_fp+bold_greedy_*_????????{name}.csv")
        rows = rows or len(read_csv(path)[1])
        assert hwmodel("verify", path)[:2] == (
            0, f"{rows} rows equal, 0 moved, 0 missing, 0 extra\n{SAME}"
        )  # fmt: skip
    edited(path, lambda records: records[1].update(percentile_50="1"))
    code, out, _ = hwmodel("verify", path)
    assert code == 1 and out.splitlines()[1].startswith("moved: chip bold: percentile_50 1 -> ")
    seed = command_of("--seed 5", "--seed x")
    edited(path, seed)
    assert hwmodel("verify", path)[2].endswith("hwmodel: --seed 'x': must be a whole number\n")


def command_of(old, new):
    return lambda records: [{**r, "command": r["command"].replace(old, new)} for r in records]


def test_a_cell_that_somebody_changed_is_found_with_the_change(hwmodel, table):
    path = table(*COMPARE)
    energy = float(read_csv(path)[1][1]["energy"])
    edited(path, lambda records: records[1].update(energy=repr(energy * 0.8)))
    code, out, _ = hwmodel("verify", path)
    assert code == 1
    verdict, first, *_ = out.splitlines()
    assert first == (
        f"moved: net bold chip paper training 1: energy {energy * 0.8!r} -> {energy!r} (+25 %)"
    )
    assert verdict == "1 row equal, 1 moved, 0 missing, 0 extra"
    assert hwmodel("verify", path, "--tolerance", "0.2")[0] == 1
    assert hwmodel("verify", path, "--tolerance", "0.26")[0] == 0


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("energy", "nan"), ("energy", "inf"), ("energy", ""), ("energy", "much"),
        ("elements", "1"), ("bits", "1e999"), ("count", "-1"), ("price", "1"), ("unit", "J"),
        ("hardware", "other"), ("network", "other"), ("batch", "2"), ("accounting", "full"),
    ],
)  # fmt: skip
def test_every_column_is_looked_at(hwmodel, table, column, value):
    path = table(*REPORT)
    edited(path, lambda records: records[7].update({column: value}))
    code, out, _ = hwmodel("verify", path, "--tolerance", "0.001")
    assert code == 1
    (moved,) = [line for line in out.splitlines() if line.startswith("moved: ")]
    assert f": {column} {value or 'empty'} -> " in moved
    assert ", 1 moved, 0 missing, 0 extra" in out


def test_the_last_digit_counts_and_the_way_of_writing_does_not(hwmodel, table):
    path = table(*REPORT)
    text = read_csv(path)[1][0]["energy"]
    edited(path, lambda records: records[0].update(energy=f"{float(text):.25e}"))
    assert hwmodel("verify", path)[0] == 0
    from math import inf, nextafter

    edited(path, lambda records: records[0].update(energy=repr(nextafter(float(text), inf))))
    assert hwmodel("verify", path)[0] == 1


def test_rows_that_are_missing_too_many_or_renamed_are_told(hwmodel, table):
    path = table(*REPORT)
    count = len(read_csv(path)[1])
    edited(path, lambda records: records[1:])
    code, out, _ = hwmodel("verify", path)
    assert code == 1
    verdict, *rows = out.splitlines()
    assert verdict == f"{count - 1} rows equal, 0 moved, 1 missing, 0 extra"
    assert rows[0].startswith("missing: conv1 forward ")
    path = table(*REPORT)
    edited(path, lambda records: [*records, records[0]])
    code, out, _ = hwmodel("verify", path)
    assert code == 1
    assert "extra: conv1 forward " in out and "(number 2)" in out
    path = table(*REPORT)
    edited(path, lambda records: records[0].update(layer="conv9"))
    assert "0 moved, 1 missing, 1 extra" in hwmodel("verify", path)[1]


def test_the_order_of_rows_is_no_matter(hwmodel, table):
    path = table(*REPORT)
    edited(path, lambda records: records[::-1])
    assert hwmodel("verify", path)[0] == 0


def test_rows_that_moved_come_in_the_order_of_the_table(hwmodel, table):
    path = table(*COMPARE)
    edited(path, lambda records: [{**r, "energy": "1"} for r in records[::-1]])
    rows = hwmodel("verify", path)[1].splitlines()[1:3]
    assert [row.split()[2] for row in rows] == ["bold", "fp"]


def test_an_input_that_changed_is_named_and_so_are_the_rows_that_moved(hwmodel, table, tmp_path):
    path = table(*COMPARE)
    written(tmp_path, CHIP, ("title: A chip", "title: My chip"), name="chip.yaml")
    code, out, _ = hwmodel("verify", path)
    assert code == 0
    assert "\ninput differs: hardware chip: " in out
    assert "2 rows equal" in out
    written(tmp_path, CHIP, ("4.6 pJ", "9.2 pJ"), name="chip.yaml")
    code, out, _ = hwmodel("verify", path)
    assert code == 1
    assert "moved: net fp chip paper training 1: compute " in out and " (+100 %)" in out
    assert "network net" not in out
    assert "0 rows equal, 2 moved, 0 missing, 0 extra" in out


def test_another_version_is_told(hwmodel, table):
    path = table(*COMPARE)
    edited(path, lambda records: [{**r, "version": "0.0.1"} for r in records])
    code, out, _ = hwmodel("verify", path)
    assert code == 0
    assert f"made by hwmodel 0.0.1, computed anew by {package.__version__}\n" in out


def test_a_line_that_could_not_be_computed_stays_so(hwmodel, table, tmp_path):
    written(tmp_path, CHIP, ("1 KiB", "7 B"), ("name: chip", "name: small"), name="small.yaml")
    path = table(*COMPARE[:5], "chip.yaml,small.yaml", *COMPARE[6:])
    assert hwmodel("verify", path)[0] == 0
    edited(path, lambda records: records[-1].update(energy="1"))
    assert "energy 1 -> empty" in hwmodel("verify", path)[1]


def command(text):
    return lambda records: [{**record, "command": text} for record in records]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda records: [{k: v for k, v in r.items() if k != "command"} for r in records],
         "t.csv: has no column command: it does not say what made it"),
        (lambda records: [{k: v for k, v in r.items() if k != "compute"} for r in records],
         "t.csv: has not the columns that compare writes today"),
        (lambda records: [{**r, "more": "1"} for r in records],
         "t.csv: has not the columns that compare writes today"),
        (lambda records: records[0].update(version="9"),
         f"t.csv: has rows of more than one version: 9, {package.__version__}"),
        (command("touch pwned"), "t.csv: command 'touch pwned': is none of hwmodel report, "
         "hwmodel compare, hwmodel reproduce, hwmodel reproduce --readings, "
         "hwmodel reproduce --measured, hwmodel generate, hwmodel sensitivity, hwmodel sweep"),
        (command("hwmodel compare net.yaml --hardware chip.yaml --methods fp --csv x"),
         "t.csv: command 'hwmodel compare net.yaml --hardware chip.yaml --methods fp --csv x': "
         "hwmodel compare has no option --csv here; known: --accounting, --accumulate, --accuracy, --baseline, "
         "--baseline-network, "
         "--batch, --checkpoint, --freeze, --hardware, --input-shape, --methods, --mode, --move, --optimal-tiles, --sustain, --trace, --train-only, --training"),
        (command("hwmodel compare net.yaml --hardware $(touch pwned) --methods fp"),
         "t.csv: command 'hwmodel compare net.yaml --hardware $(touch pwned) --methods fp': "
         "hwmodel compare has no option pwned) here; known: --accounting, --accumulate, --accuracy, --baseline, "
         "--baseline-network, "
         "--batch, --checkpoint, --freeze, --hardware, --input-shape, --methods, --mode, --move, --optimal-tiles, --sustain, --trace, --train-only, --training"),
        (command("hwmodel compare net.yaml --hardware v100 --methods fp, --accounting paper"),
         "--methods 'fp,': names separated by commas, none of them empty"),
        (command("hwmodel report net.yaml --hardware v100"),
         "t.csv: command 'hwmodel report net.yaml --hardware v100': lacks --method"),
        (command("hwmodel compare net.yaml --hardware '$(touch pwned)' --methods fp --accounting paper"),
         "no hardware is called '$(touch pwned)': known: "),
        (command("hwmodel compare net.yaml --hardware v100 --methods fp --accounting paper --batch x"),
         "--batch 'x': must be a whole number"),
        (command("hwmodel explain net.yaml --layer conv1"), "t.csv: command 'hwmodel explain net.yaml --layer conv1': "
         "is none of hwmodel report, hwmodel compare, hwmodel reproduce, hwmodel reproduce --readings, "
         "hwmodel reproduce --measured, hwmodel generate, hwmodel sensitivity, hwmodel sweep"),
        (command("hwmodel reproduce nothing --accounting paper"), "no published table is called "),
    ],
)  # fmt: skip
def test_what_cannot_be_computed_anew_is_refused_and_nothing_is_run(
    hwmodel, table, tmp_path, change, sentence
):
    edited(table(*COMPARE), change)
    code, out, err = hwmodel("verify", "t.csv")
    assert (code, out) == (2, "")
    assert err.splitlines()[-1].startswith(f"hwmodel: {sentence}")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["chip.yaml", "net.yaml", "t.csv"]


def test_an_input_that_is_gone_is_named(hwmodel, table, tmp_path):
    path = table(*REPORT)
    (tmp_path / "chip.yaml").unlink()
    code, out, err = hwmodel("verify", path)
    assert (code, out) == (2, "")
    assert err.splitlines()[-1] == (
        "hwmodel: chip.yaml: cannot be read: No such file or directory; a table names files from the "
        "folder that it was made in, and they are looked for from the present one"
    )


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("x.csv", "a,b\n1,2\n", "x.csv: has no column version: it does not say what made it"),
        ("x.csv", "", "x.csv: has no column version: it does not say what made it"),
        ("x.csv", f"{MADE}\n", "x.csv: has no rows"),
        ("x.csv", f"{MADE}\n1\n", "x.csv:2: has not as many cells as the header"),
        ("x.csv", f"{MADE}\n1,2,3\n1,2,3,4\n", "x.csv:3: has not as many cells as the header"),
        ("x.json", "{", "x.json: is not JSON: "),
        ("x.json", "[1]", "x.json: has no list 'rows' of objects"),
        ("x.json", '{"rows": [1]}', "x.json: has no list 'rows' of objects"),
        ("x.json", '{"rows": []}', "x.json: has no rows"),
        ("x.json", "[" * 100000, "x.json: is not JSON: "),
        ("x.parquet", "PAR1", "x.parquet: is not a Parquet file: "),
        ("x.html", "<p>", "x.html: has rounded numbers; verify the .csv, .json or .parquet file"),
        ("x.md", "|a|", "x.md: has rounded numbers; verify the .csv, .json or .parquet file"),
        ("t.csv", "a,b,a\n1,2,3\n", "t.csv:1: has the column 'a' twice"),
        ("none.csv", None, "none.csv: cannot be read: No such file or directory"),
        ("none.json", None, "none.json: cannot be read: No such file or directory"),
        ("none.parquet", None, "none.parquet: cannot be read: "),
    ],
)  # fmt: skip
def test_a_file_that_is_no_table_of_ours_is_refused(hwmodel, tmp_path, name, content, sentence):
    if content is not None:
        (tmp_path / name).write_text(content)
    code, out, err = hwmodel("verify", name)
    assert (code, out) == (2, "")
    assert err.startswith(f"hwmodel: {sentence}")
    assert err.count("\n") == 1


@pytest.mark.parametrize("tolerance", ["-1", "1", "nan", "inf"])
def test_a_tolerance_is_a_share(hwmodel, table, tolerance):
    path = table(*COMPARE)
    code, _, err = hwmodel("verify", path, "--tolerance", tolerance)
    assert code == 2
    assert err.splitlines()[-1].startswith("hwmodel: --tolerance ")


def test_json_of_other_hands_is_compared_by_value(hwmodel, table):
    path = table(*COMPARE, name="t.json")
    document = json.loads(path.read_text())
    document["rows"][0]["energy"] = None
    document["rows"][1]["energy"] = [1]
    path.write_text(json.dumps(document))
    code, out, _ = hwmodel("verify", path)
    assert code == 1
    assert "energy empty -> " in out and "energy [1] -> " in out


def test_a_trace_is_part_of_the_question(hwmodel, table, tmp_path):
    write_trace(trace(), tmp_path / "trace.json")
    options = ("--accounting", "full", "--trace", "trace.json")
    path = table(
        "report",
        "conv-small",
        "--hardware",
        "ascend",
        "--method",
        "bold",
        *options,
    )
    assert hwmodel("verify", path)[0] == 0
    inputs = read_csv(path)[1][0]["inputs_sha256"].split("-")
    assert len(inputs) == 6  # network, chip, bold, fp, accounting, trace
    write_trace(trace(flip=0.5), tmp_path / "trace.json")
    code, out, _ = hwmodel("verify", path)
    assert code == 1
    assert f"input differs: trace bold seed 0: {inputs[-1]} then, " in out
    compared = table("compare", "conv-small", "--hardware", "ascend", "--methods", "bold,fp",
                     *options, "--accuracy", "0.6")  # fmt: skip
    assert hwmodel("verify", compared)[0] == 0
    command = read_csv(compared)[1][0]["command"]
    assert command.endswith(" --batch 4 --mode training --trace trace.json --accuracy 0.6")


def test_a_spreadsheet_s_mark_and_line_ends_are_no_matter(hwmodel, table):
    path = table(*COMPARE)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert hwmodel("verify", path)[0] == 0
    path = table(*COMPARE, name="t.json")
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert hwmodel("verify", path)[0] == 0


def test_so_they_are_in_a_trace(tmp_path):
    write_trace(trace(), path := tmp_path / "trace.json")
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert read_trace(path) == trace()


def test_a_table_that_was_cut_is_told_so(hwmodel, table, refused):
    path = table(*REPORT)
    text = path.read_text()
    path.write_text(text[:-9])
    assert refused("verify", "t.csv") == "t.csv: ends in the middle of its last row: it was cut"
    path.write_text(text[: text.rindex(",") - 3])
    assert refused("verify", "t.csv").endswith(" has not as many cells as the header")
    path.write_text(text[:-1])  # an editor may drop the end of the last line
    assert hwmodel("verify", "t.csv")[0] == 0


def test_a_study_of_format_1_is_known(hwmodel, table, refused, tmp_path):
    """Its columns are those of now; the fields of accountings stood in no groups."""
    table(*COMPARE)
    assert hwmodel(*STUDY, "--samples", 0, "--jobs", 1, "--out", "s")[0] == 0
    (path,) = (tmp_path / "s").glob("*.csv")

    def flat(records):
        for record in records:
            record["field"] = record["field"].replace("accounting.extras.", "accounting.")

    assert hwmodel("verify", path)[0] == 0
    edited(path, flat)
    said = refused("verify", path)
    assert said.startswith(
        f"{path}: is a table of format 1, and format 2 is read: make it anew, hwmodel "
    )
