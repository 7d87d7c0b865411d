"""E: files and state. What is damaged is made anew or refused in a line; streams may be closed."""

import csv
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hwmodel as package
from tests.specs import CHIP, NETWORK, written

SWEEP = """\
version: 1
name: small
title: t
network: vgg-small-1fc
hardware: ascend
method: [fp, bold]
accounting: paper
axes:
  - {batch: [1, 2, 3]}
"""
ONE = """\
{version: 1, name: one, title: t, input: [2, 1, 1], layers: [{name: fc, kind: linear, features: 3}]}
"""
SWEPT = ("sweep", "small.yaml", "--out", "t.csv", "--jobs", "1")


def program(*arguments, cwd, code=None, **options):
    """Run hwmodel as a process of its own, of a folder of code."""
    folder = str(code or Path(package.__file__).parent.parent)
    return subprocess.run(
        [sys.executable, "-m", "hwmodel", *map(str, arguments)],
        cwd=cwd, env=os.environ | {"PYTHONPATH": folder, "COLUMNS": "200"},
        capture_output="stdout" not in options and "stderr" not in options,
        text=True, timeout=120, **options,
    )  # fmt: skip


# E1, E2: parts of a sweep


@pytest.fixture
def begun(hwmodel, tmp_path):
    """A sweep of which all parts are there, and no table: its place was taken by a folder."""
    (tmp_path / "small.yaml").write_text(SWEEP)
    assert hwmodel(*SWEPT)[0] == 0
    whole = (tmp_path / "t.csv").read_bytes()
    (tmp_path / "t.csv").unlink()
    (tmp_path / "t.csv").mkdir()
    assert hwmodel(*SWEPT)[0] == 2
    (tmp_path / "t.csv").rmdir()
    parts = sorted((tmp_path / "t.csv.parts").glob("part-*"))
    assert len(parts) == 6
    return whole, parts


def changed(change):
    def damage(parts):
        *before, last = parts[3].read_bytes().splitlines(keepends=True)
        parts[3].write_bytes(b"".join([*before, *change(last)]))

    return damage


DAMAGES = {
    "one over another": lambda parts: shutil.copy(parts[1], parts[3]),
    "a line twice": changed(lambda line: (line, line)),
    "a formula": changed(lambda line: (line.replace(b",pJ,", b",=cmd(),").replace(b",MAC,", b",=cmd(),"),)),
    "cut off": changed(lambda line: (line[: len(line) // 2],)),
    "a word for a number": changed(lambda line: (b"x" + line,)),
    "another digit": changed(lambda line: (line.replace(b"1", b"2"),)),
    "empty": lambda parts: parts[3].write_bytes(b""),
    "no text": lambda parts: parts[3].write_bytes(b"\xff\x00\xfe"),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_E2_a_damaged_part_is_made_anew(hwmodel, tmp_path, begun, damage):
    whole, parts = begun
    DAMAGES[damage](parts)
    code, _, err = hwmodel(*SWEPT, "--resume")
    assert (code, (tmp_path / "t.csv").read_bytes()) == (0, whole)
    assert err.splitlines()[0] == (
        "hwmodel: warning: t.csv.parts: 1 part of 6: damaged, or made by other code; made anew"
    )


def test_E2_parts_that_are_as_they_were_are_used(hwmodel, tmp_path, begun, monkeypatch):
    """Nothing is computed again, and nothing is said."""
    whole, _ = begun
    monkeypatch.setattr("hwmodel.vary.sweep.run.run_part", None)
    code, _, err = hwmodel(*SWEPT, "--resume")
    said, greedy = err.splitlines()
    assert (code, said) == (0, "wrote t.csv") and "tiles are greedy" in greedy
    assert (tmp_path / "t.csv").read_bytes() == whole


@pytest.mark.parametrize("changed", ["published.yaml", "code"])
def test_E1_parts_of_other_code_or_data_are_made_anew(tmp_path, changed):
    """A published accuracy, or a line of code, changes between a run and its end."""
    root = Path(package.__file__).parent.parent
    code, place = tmp_path / "code", tmp_path / "place"
    for name in ("hwmodel", "hardware_specs"):
        shutil.copytree(root / name, code / name, ignore=shutil.ignore_patterns("__pycache__"))
    place.mkdir()
    (place / "small.yaml").write_text(SWEEP.replace("vgg-small-1fc", "vgg-small"))
    (place / "t.csv").mkdir()
    assert program(*SWEPT, cwd=place, code=code).returncode == 2
    (place / "t.csv").rmdir()
    if changed == "code":
        (file,) = code.rglob("sweep/part.py")
        text = file.read_text()
        file.write_text(f"{text}\n# another line\n")
    else:
        (file,) = code.rglob("published.yaml")
        text = file.read_text()
        file.write_text(text.replace("{top-1: 90.29}", "{top-1: 91.29}"))
    assert file.read_text() != text
    run = program(*SWEPT, "--resume", cwd=place, code=code)
    assert run.returncode == 0, run.stderr
    resumed = (place / "t.csv").read_text()
    assert "6 parts of 6: damaged, or made by other code; made anew" in run.stderr
    assert program(*SWEPT, cwd=place, code=code).returncode == 0
    assert (place / "t.csv").read_text() == resumed


# E5: numbers beyond 1e308


@pytest.mark.parametrize(
    ("axis", "said"),
    [
        ("hardware.levels.L1.capacity: {times: [1e308]}", "1e+308 times 8388608 is beyond 1e308"),
        ("hardware.levels.L1.capacity: {times: [-1e308]}", "-1e+308: must be at least 0"),
        ("hardware.levels.L1.read_energy: {times: [1e308]}", "an energy must be at most 1e+100"),
        ("hardware.levels.L1.capacity: [1e308 bit]", "a capacity must be at most 1e+30 bit"),
        ("accounting.extras.preactivation_words: {times: [1e308]}", "must be at most 16"),
    ],
)  # fmt: skip
def test_E5_a_factor_beyond_all_numbers_is_one_message(refused, tmp_path, axis, said):
    (tmp_path / "s.yaml").write_text(SWEEP.replace("batch: [1, 2, 3]", axis))
    line = refused("sweep", "s.yaml", "--out", "t.csv")
    assert line.startswith("s.yaml:9: ") and said in line
    derived = (
        "derived: {hardware.levels.L2.capacity: {of: hardware.levels.L1.capacity, times: 1e308}}"
    )
    (tmp_path / "s.yaml").write_text(f"{SWEEP}{derived}\n")
    assert "is beyond 1e308" in refused("sweep", "s.yaml", "--out", "t.csv")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (("capacity: 64 KiB", "capacity: 1e308 bit"), "a capacity must be at most 1e+30 bit"),
        (("5 pJ/B", "1e308 pJ/B"), "an energy must be at most 1e+100"),
    ],
)
def test_E5_so_is_a_chip_that_no_study_can_double(refused, tmp_path, changes, said):
    written(tmp_path, CHIP, changes, name="chip.yaml")
    line = refused(
        "sensitivity",
        "mlp-784-512-512-10",
        "--hardware",
        "chip.yaml",
        "--methods",
        "bold",
        "--accounting",
        "paper",
    )
    assert said in line


def test_E5_and_a_range_of_more_than_all_numbers(refused, tmp_path):
    (tmp_path / "r.yaml").write_text("hardware.levels.L1.read_energy: [1e-300, 1e100]\n")
    words = ("mlp-784-512-512-10", "--hardware", "ascend", "--methods", "bold", "--samples", "2")
    line = refused("sensitivity", *words, "--ranges", "r.yaml", "--accounting", "paper")
    assert "needs 0 < low <= high" in line


# E6: bounds on memory

LEAST, MOST = 10**9, 30  # bytes; seconds of the processor, on a machine that is slow
SWEPT_COLUMNS = "point,network,accounting,method,mode,batch,hardware,energy,unit,reason"
MADE = "version,inputs_sha256,command"


# A process of its own starts the command: what is started counts the memory of who starts it.
MEASURED = """
import os, resource, subprocess, sys
code = subprocess.call([sys.executable, "-m", "hwmodel", *sys.argv[2:]], stderr=subprocess.STDOUT)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
with open(sys.argv[1], "w") as stream:
    stream.write(f"{code} {1024 * used.ru_maxrss} {used.ru_utime}")
"""


def used(*arguments, cwd):
    """Exit code, what is said, bytes of memory and seconds of the processor of a command."""
    folder = str(Path(package.__file__).parent.parent)
    said = subprocess.run(
        [sys.executable, "-c", MEASURED, "measured", *arguments], cwd=cwd, check=True,
        capture_output=True, text=True, env=os.environ | {"PYTHONPATH": folder},
    ).stdout  # fmt: skip
    code, memory, seconds = (cwd / "measured").read_text().split()
    return int(code), said, int(memory), float(seconds)


@pytest.mark.parametrize("command", [("verify",), ("best",), ("plot", "-o", "x.png")])
@pytest.mark.parametrize("header", ["a,b", f"{SWEPT_COLUMNS},{MADE}"])
def test_E6_a_long_table_of_short_rows_is_refused_at_its_beginning(tmp_path, command, header):
    with (tmp_path / "rows.csv").open("w") as stream:
        stream.write(f"{header}\n")
        for _ in range(75):
            stream.write("1,2\n" * 100_000)
    code, said, memory, seconds = used(command[0], "rows.csv", *command[1:], cwd=tmp_path)
    assert code == 2 and said.startswith("hwmodel: rows.csv") and said.count("\n") == 1
    assert memory < LEAST / 4 and seconds < MOST / 3


def test_E6_a_table_is_held_by_columns(tmp_path):
    """100,000 rows of 13 cells: as a dict each they held 100 MB more."""
    rows = "".join(f"{i},n,a,m,training,1,h,2.5,pJ,,0.1,x,c\n" for i in range(100_000))
    (tmp_path / "t.csv").write_text(f"{SWEPT_COLUMNS},{MADE}\n{rows}")
    code, said, memory, seconds = used("best", "t.csv", "--top", "1", cwd=tmp_path)
    assert code == 0 and " of 100,000 points" in said
    assert memory < 130e6 and seconds < MOST


def test_E6_cells_that_take_too_much_are_refused(tmp_path):
    from hwmodel.errors import DataError
    from hwmodel.specs.csv_files import read_table

    (tmp_path / "t.csv").write_text("a,b\n" + "".join(f"{i},{'x' * 1000}{i}\n" for i in range(100)))
    table = read_table(tmp_path / "t.csv", list, most=200_000)
    assert [*map(len, table.values())] == [100, 100]
    with pytest.raises(DataError, match="take more than the 50,000 B that are held"):
        read_table(tmp_path / "t.csv", list, most=50_000)
    (tmp_path / "t.csv").write_text("a,b\n1," + "x" * 2_000_000)
    with pytest.raises(DataError, match="is a line of more than 1,048,576 characters"):
        read_table(tmp_path / "t.csv", list)


def test_E6_json_without_end_is_refused(refused, tmp_path):
    (tmp_path / "t.json").write_text('{"rows": [')
    os.truncate(tmp_path / "t.json", 10**12)  # no block of the disk is taken
    assert refused("verify", "t.json").startswith("t.json: is longer than 25,165,824 B")
    (tmp_path / "t.json").unlink()
    (tmp_path / "t.json").symlink_to("/dev/zero")
    assert refused("verify", "t.json") == "t.json: is no file, but a device or a pipe"


def test_E6_json_of_many_small_things_stays_within_the_bound(tmp_path):
    (tmp_path / "t.json").write_text('{"rows": [{}' + ",{}" * 8_000_000 + "]}")
    code, said, memory, seconds = used("verify", "t.json", cwd=tmp_path)
    assert code == 2 and said == (
        "hwmodel: t.json: has no column version: it does not say what made it\n"
    )
    assert memory < LEAST and seconds < MOST


@pytest.mark.parametrize(("points", "code"), [(10**7, 2), (10**6, 0), (None, 0)])
def test_E6_a_dry_run_of_millions_of_points_takes_seconds(tmp_path, points, code):
    prices = ", ".join(map(str, range(1, 216)))
    axes = "\n".join(
        f"  - {{hardware.levels.{level}.read_energy: {{times: [{prices}]}}}}"
        for level in ("L1", "L2", "L3")
    )
    text = SWEEP.replace("[fp, bold]", "fp").replace("  - {batch: [1, 2, 3]}", axes)
    sample = f"sample: {{points: {points}, seed: 1}}\n" if points else ""
    (tmp_path / "s.yaml").write_text(text + sample)
    found, said, memory, seconds = used("sweep", "s.yaml", "--dry-run", cwd=tmp_path)
    assert found == code and memory < LEAST and seconds < MOST
    assert (
        ("must be at most 1000000" in said) if code else (f"{points or 215**3:,} points in" in said)
    )


def test_E6_a_long_list_under_an_unknown_key_is_refused_in_seconds(tmp_path):
    (tmp_path / "x.yaml").write_text(f"version: 1\nzzz: [{'1,' * 520_000}1]\n")
    code, said, memory, seconds = used("hardware", "check", "x.yaml", cwd=tmp_path)
    assert code == 2 and said == "hwmodel: x.yaml:2: has more than 100,000 names and values\n"
    assert memory < LEAST / 4 and seconds < MOST


# E7: pipes


@pytest.fixture
def impatient():
    """That a pipe is waited for must not stop the tests."""

    def waited(number, frame):
        raise AssertionError("waits for a pipe")

    before = signal.signal(signal.SIGALRM, waited)
    signal.alarm(MOST)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize(
    "words",
    [
        ("hardware", "check", "p.yaml"),
        ("report", "p.yaml", "--hardware", "ascend", "--method", "fp"),
        ("report", "vgg-small-1fc", "--hardware", "ascend", "--method", "fp", "--trace", "p.yaml"),
        ("verify", "p.yaml"),
        ("verify", "p.json"),
        ("verify", "p.parquet"),
        ("best", "p.yaml"),
        ("best", "p.parquet"),
        ("plot", "p.yaml", "-o", "x.png"),
        ("plot", "p.json", "-o", "x.png"),
        ("network", "import", "p.onnx", "-o", "x.yaml"),
        ("tile", "--hardware", "ascend", "--conv", "N=1,M=8,C=8,H=8,W=8,K=3", "--bits", "8,8,8",
         "--tiles", "p.json"),
        ("sensitivity", "vgg-small-1fc", "--hardware", "ascend", "--methods", "bold", "--samples",
         "2", "--ranges", "p.yaml"),
        ("sweep", "p.yaml"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_E7_a_pipe_is_refused(refused, impatient, tmp_path, words):
    for ending in ("yaml", "json", "parquet", "onnx"):
        os.mkfifo(tmp_path / f"p.{ending}")
    said = refused(*words)
    assert said.startswith("p.") and "pipe" in said


def test_E7_so_is_one_that_a_table_names(hwmodel, impatient, tmp_path):
    written(tmp_path, CHIP, name="chip.yaml")
    words = ("report", "mlp-784-512-512-10", "--hardware", "chip.yaml", "--method", "fp")
    assert hwmodel(*words, "--csv", "t.csv")[0] == 0
    (tmp_path / "chip.yaml").unlink()
    os.mkfifo(tmp_path / "chip.yaml")
    code, out, err = hwmodel("verify", "t.csv")
    assert (code, out) == (2, "")
    assert err.splitlines()[-1] == "hwmodel: chip.yaml: is no file, but a device or a pipe"


# E8: no output takes the place of an input

TILE = ("tile", "--hardware", "ascend", "--conv", "N=1,M=8,C=8,H=8,W=8,K=3", "--bits", "8,8,8")


def test_E8_a_tiling_is_not_written_over_the_one_that_was_read(hwmodel, refused, tmp_path):
    assert hwmodel(*TILE, "--save", "t.json")[0] == 0
    before = (tmp_path / "t.json").read_bytes()
    (tmp_path / "link.json").symlink_to("t.json")
    for target in ("t.json", "link.json", "../" + tmp_path.name + "/t.json"):
        said = refused(*TILE, "--tiles", "t.json", "--save", target)
        assert said == f"{target}: is read by the same command, and would be written over"
    assert (tmp_path / "t.json").read_bytes() == before


# E9: outputs are named by what they hold


@pytest.mark.usefixtures("undrawn")
def test_E9_other_chips_methods_and_files_have_files_of_their_own(hwmodel, tmp_path):
    """No two of these questions share a file, and the same question asked again does."""
    written(tmp_path, CHIP, name="chip.yaml")
    (tmp_path / "other").mkdir()
    written(tmp_path / "other", CHIP, ("5 pJ/B", "6 pJ/B"), name="chip.yaml")
    written(tmp_path, NETWORK, name="net.yaml")
    (tmp_path / "one.yaml").write_text(ONE)
    net, one = "net.yaml", "one.yaml"
    questions = [
        ("compare", net, "--hardware", "ascend", "--methods", "fp,bold"),
        ("compare", net, "--hardware", "v100", "--methods", "fp,bold"),
        ("compare", net, "--hardware", "ascend", "--methods", "fp,bold-bn"),
        ("compare", net, "--hardware", "ascend", "--methods", "fp,bold", "--baseline", "bold"),
        ("compare", net, "--hardware", "ascend", "--methods", "fp,bold", "--training", "imagenet-300"),
        ("compare", net, "--hardware", "chip.yaml", "--methods", "fp"),
        ("compare", net, "--hardware", "other/chip.yaml", "--methods", "fp"),
        ("compare", net, "--hardware", "ascend", "--methods", "bold,fp,bold-bn,int8,xnor-net,"
         "binarynet,binaryconnect,ir-net,slb,luq,rad,meliusnet,real2binary,pokebnn,bnext"),
        ("report", net, "--hardware", "chip.yaml", "--method", "fp"),
        ("report", net, "--hardware", "other/chip.yaml", "--method", "fp"),
        ("report", net, "--hardware", "ascend", "--method", "fp"),
        ("report", net, "--hardware", "ascend", "--method", "fp", "--training", "imagenet-300"),
        ("reproduce", "cifar10_vgg_small", "--accounting", "paper", "--optimal-tiles", "no"),
        ("sensitivity", one, "--hardware", "ascend", "--methods", "bold", "--jobs", "1", "--samples", "1", "--accounting", "paper"),
        ("sensitivity", one, "--hardware", "v100", "--methods", "bold", "--jobs", "1", "--samples", "1", "--accounting", "paper"),
        ("sensitivity", one, "--hardware", "ascend", "--methods", "luq", "--jobs", "1", "--samples", "1", "--accounting", "paper"),
    ]  # fmt: skip
    for number, question in enumerate(questions, start=1):
        if number > 1 and "--accounting" not in question:  # which takes no search
            question = (*question, "--accounting", "paper")
        if number > 1 and question[0] == "compare":
            question = (*question, "--optimal-tiles", "no")
        assert hwmodel(*question)[0] in (0, 1), question
        made = {path.name for path in (tmp_path / "reports").glob("*[!s].csv")}  # no samples
        assert len(made) == number, question
    assert hwmodel(*questions[0])[0] == 0
    names = {path.name for path in (tmp_path / "reports").glob("*[!s].csv")}
    assert len(names) == len(questions) and max(map(len, names)) < 150
    assert any(
        name.startswith("compare_net_ascend_fp+bold_chip_training_batch1_") for name in names
    )


def test_E9_a_sweep_of_the_same_name_does_not_take_the_place_of_another(hwmodel, refused, tmp_path):
    (tmp_path / "a.yaml").write_text(SWEEP)
    (tmp_path / "b.yaml").write_text(SWEEP.replace("[1, 2, 3]", "[4, 5]"))
    for _ in range(2):  # the same again is what is asked for
        assert hwmodel("sweep", "a.yaml", "--jobs", "1")[0] == 0
    before = (tmp_path / "small.csv").read_bytes()
    said = refused("sweep", "b.yaml", "--jobs", "1")
    assert said == "small.csv: is no table of 'hwmodel sweep b.yaml'; name another by --out"
    assert (tmp_path / "small.csv").read_bytes() == before
    assert hwmodel("sweep", "b.yaml", "--out", "small.csv", "--jobs", "1")[0] == 0


# E11: a colour or a marker that is accepted is drawn


@pytest.mark.parametrize("colour", ["#0072B2", "#AbCdEf"])
def test_E11_the_colour_and_marker_of_a_method_s_file_are_drawn(hwmodel, tmp_path, colour):
    """In a bar of a comparison, a roofline, a sweep's lines and the page; until the file is gone."""
    shown = hwmodel("method", "show", "int8")[1].replace("name: int8", "name: mine")
    kept = [
        line for line in shown.splitlines() if not line.startswith(("colour", "marker", "hatch"))
    ]
    (tmp_path / "mine.yaml").write_text(
        "\n".join([*kept, f"colour: '{colour}'", "marker: '*'", ""])
    )
    net = "mlp-784-512-512-10"
    words = ("--hardware", "ascend", "--methods", "fp,mine.yaml", "--html", "p.html", "--out", "o")
    code, _, err = hwmodel("compare", net, *words, "--accounting", "paper")
    assert code == 0, err
    drawn = [(tmp_path / "p.html"), *(tmp_path / "o").glob("*_methods.svg")]
    (csv,) = (tmp_path / "o").glob("*.csv")
    sweep = SWEEP.replace("vgg-small-1fc", net).replace("[fp, bold]", "[fp, mine.yaml]")
    (tmp_path / "s.yaml").write_text(sweep)
    assert hwmodel("sweep", "s.yaml", "--out", "s.csv", "--jobs", "1")[0] == 0
    report = ("report", net, "--hardware", "ascend", "--method", "mine.yaml", "--csv", "r.csv")
    assert hwmodel(*report)[0] == 0
    for table, kind in ((csv, "methods"), ("r.csv", "roofline"), ("s.csv", "lines")):
        more = ("--x", "batch") if kind == "lines" else ()
        assert hwmodel("plot", table, "-o", f"{kind}.svg", "--kind", kind, *more)[0] == 0
        drawn.append(tmp_path / f"{kind}.svg")
    for path in drawn:
        assert colour.lower() in path.read_text().lower(), path.name
    before = (tmp_path / "lines.svg").read_text()
    (tmp_path / "mine.yaml").write_text((tmp_path / "mine.yaml").read_text().replace("'*'", "'s'"))
    assert hwmodel("plot", "s.csv", "-o", "lines.svg", "--kind", "lines", "--x", "batch")[0] == 0
    assert (tmp_path / "lines.svg").read_text() != before  # another marker
    (tmp_path / "mine.yaml").unlink()
    assert hwmodel("plot", csv, "-o", "methods.svg")[0] == 0
    assert colour.lower() not in (tmp_path / "methods.svg").read_text().lower()


@pytest.mark.parametrize("kind", ["pareto", "lines", "heatmap"])
def test_E11_a_style_moves_the_figures_of_a_sweep(hwmodel, refused, tmp_path, kind):
    (tmp_path / "s.yaml").write_text(
        f"{SWEEP}  - {{hardware.levels.L1.capacity: {{times: [1, 2]}}}}\n"
    )
    assert hwmodel("sweep", "s.yaml", "--out", "s.csv", "--jobs", "1")[0] == 0
    axes = {"lines": ("--x", "batch"), "pareto": ()}
    axes["heatmap"] = ("--x", "batch", "--y", "hardware.levels.L1.capacity")
    words = ("plot", "s.csv", "--kind", kind, *axes[kind])
    drawn = set()
    for style in ("draft", "paper", "slides"):
        assert hwmodel(*words, "-o", f"{style}.svg", "--style", style)[0] == 0
        drawn.add((tmp_path / f"{style}.svg").read_text())
    assert len(drawn) == 3
    assert "no style of plots is called 'papr'" in refused(*words, "-o", "x.svg", "--style", "papr")


# E4: closed streams

NET = "mlp-784-512-512-10"
QUICK = ("--accounting", "paper", "--optimal-tiles", "no")  # nothing is searched
COMPARED = ("compare", NET, "--hardware", "ascend", "--methods", "fp,bold", *QUICK)


@pytest.mark.parametrize(
    ("words", "closed", "code", "made"),
    [
        ((*COMPARED, "--csv", "-"), ">&-", 2, ()),
        ((*COMPARED, "--csv", "t.csv"), ">&-", 2, ("t.csv",)),
        ((*COMPARED, "--csv", "t.csv"), "2>&-", 0, ("t.csv",)),
        ((*COMPARED, "--csv", "t.csv"), ">&- 2>&- <&-", 2, ("t.csv",)),
        ((*COMPARED[:8], "--out", "o"), ">&-", 2, (f"o/compare_{NET}_ascend_fp+bold_paper_training_batch1.csv",)),
        (("report", NET, "--hardware", "ascend", "--method", "bold", *QUICK[:2], "-o", "t.json"), "2>&-", 0, ("t.json",)),
        (("sweep", "small.yaml", "--out", "t.csv", "--jobs", "2"), ">&- 2>&- <&-", 0, ("t.csv",)),
        (("compare", NET, "--hardware", "nonsense", "--methods", "fp"), "2>&-", 2, ()),
        (("--version",), ">&-", 2, ()),
        (("nonsense",), "2>&-", 2, ()),
    ],
)  # fmt: skip
def test_E4_streams_may_be_closed(tmp_path, words, closed, code, made):
    """Files are written all the same, whole; what could not be printed is said, and the code tells."""
    (tmp_path / "small.yaml").write_text(SWEEP)
    folder = str(Path(package.__file__).parent.parent)
    line = shlex.join([sys.executable, "-m", "hwmodel", *words])
    run = subprocess.run(
        ["sh", "-c", f"{line} {closed}"], cwd=tmp_path, env=os.environ | {"PYTHONPATH": folder},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert (run.returncode, run.stdout if ">&-" in closed.split() else "") == (code, "")
    assert "Traceback" not in run.stderr
    if closed == ">&-":
        lost = "hwmodel: standard output is closed: what was to be printed is lost"
        assert run.stderr.splitlines().count(lost) == 1
    for name in made:
        text = (tmp_path / name).read_text()
        assert len(text.splitlines()) > 2 and "Not counted under" not in text.splitlines()[0]


# E10: numbers whole, names with commas, a folder that is gone


@pytest.mark.parametrize("network", ["densenet121", "deeplabv3-boolean", "bert-base"])
def test_E10_no_number_is_cut_in_a_pipe(hwmodel, network):
    code, out, _ = hwmodel("network", "show", network)
    assert code == 0 and "\u2026" not in out
    rows = hwmodel("network", "show", network, "--csv", "-")[1].splitlines()
    macs = [int(row["macs"]) for row in csv.DictReader(rows)]
    printed = out.splitlines()
    for number in (*macs, sum(macs)):
        assert any(f" {number:,} " in line for line in printed), number


def test_E10_no_number_is_cut_on_a_narrow_screen(hwmodel, monkeypatch):
    """Lines run over the edge, as a screen lets them."""
    import rich.console

    monkeypatch.setattr(rich.console.Console, "is_terminal", True)
    monkeypatch.setenv("COLUMNS", "40")
    code, out, _ = hwmodel("network", "show", NET)
    assert code == 0
    for number in ("401,408", "668,672", "1,607,680"):
        assert number in out


def test_E10_a_file_may_have_a_comma_in_its_name(hwmodel, refused, tmp_path):
    written(tmp_path, CHIP, name="my,chip.yaml")
    text = hwmodel("method", "show", "bold")[1].replace("name: bold", "name: mine")
    (tmp_path / "a, b,c.yaml").write_text(text)
    words = (
        "compare",
        NET,
        "--hardware",
        "ascend,my,chip.yaml",
        "--methods",
        "fp,a, b,c.yaml,bold",
        *QUICK,
    )
    assert hwmodel(*words, "--csv", "t.csv")[0] == 0
    rows = list(csv.DictReader((tmp_path / "t.csv").read_text().splitlines()))
    assert [row["method"] for row in rows] == ["fp", "mine", "bold"] * 2
    assert {row["hardware"] for row in rows} == {"ascend", "chip"}
    assert hwmodel("verify", "t.csv")[0] == 0
    assert hwmodel(*words, "--html", "p,q.html", "--out", "o,p")[0] == 0
    assert hwmodel("plot", "t.csv", "-o", "f,g.svg")[0] == 0
    assert (
        hwmodel(
            "report",
            NET,
            "--hardware",
            "my,chip.yaml",
            "--method",
            "fp",
            "--csv",
            "r,s.csv",
            "--accounting",
            "paper",
        )[0]
        == 0
    )
    said = refused(
        "compare", NET, "--hardware", "none,chip.yaml", "--methods", "fp", "--accounting", "paper"
    )
    assert said.startswith("no hardware is called 'none'")


def test_E10_a_table_is_verified_by_a_colleague_without_its_files(hwmodel, tmp_path, monkeypatch):
    written(tmp_path, CHIP, name="chip.yaml")
    assert (
        hwmodel(
            "compare",
            NET,
            "--hardware",
            "chip.yaml",
            "--methods",
            "fp,bold",
            "-o",
            "t.csv",
            "--accounting",
            "paper",
        )[0]
        == 0
    )
    assert hwmodel("bundle", "t.csv", "-o", "there/study.zip")[0] == 0
    (tmp_path / "chip.yaml").unlink()
    assert hwmodel("verify", "t.csv")[0] == 2
    monkeypatch.chdir(tmp_path / "there")
    code, out, err = hwmodel("verify", "study.zip")
    assert code == 0, err
    assert out.splitlines()[0] == "2 rows equal, 0 moved, 0 missing, 0 extra"


@pytest.mark.parametrize("words", [COMPARED, (*COMPARED, "--csv", "t.csv"), ("sweep", "s.yaml"),
                                   ("verify", "t.csv"), ("hardware", "check", "s.yaml")])  # fmt: skip
def test_E10_a_folder_that_is_gone_is_one_message(tmp_path, words):
    (tmp_path / "gone").mkdir()
    line = shlex.join([sys.executable, "-m", "hwmodel", *words])
    folder = str(Path(package.__file__).parent.parent)
    run = subprocess.run(
        ["sh", "-c", f"rmdir ../gone; {line}"], cwd=tmp_path / "gone", text=True, timeout=120,
        env=os.environ | {"PYTHONPATH": folder}, capture_output=True,
    )  # fmt: skip
    assert run.returncode == 2
    assert run.stderr.splitlines()[-1].startswith("hwmodel: ") and "Traceback" not in run.stderr
    assert "No such file or directory" in run.stderr and "standard output" not in run.stderr


@pytest.mark.parametrize("method", ["bold", "int8", "luq"])
def test_prices_are_looked_for_before_anything_is_searched(tmp_path, monkeypatch, method):
    """The chip prices its 32-bit MAC alone; the last product of the last layer is another."""
    import hwmodel.model.entered as entering
    from hwmodel.errors import SpecError

    def search(*arguments):
        raise AssertionError("searched")

    monkeypatch.setattr(entering, "tile", search)
    written(tmp_path, CHIP, name="chip.yaml")
    accounting = (Path(package.__file__).parent / "accountings" / "full.yaml").read_text()
    head, rest = accounting.split("  relative_prices:", 1)
    _, *after = re.split(r"\n(?=  \w)", rest)
    (tmp_path / "bare.yaml").write_text("\n".join([f"{head}  relative_prices: []", *after]))
    with pytest.raises(SpecError, match=r"states no price|prices no logic"):
        package.evaluate(NET, tmp_path / "chip.yaml", method, accounting=tmp_path / "bare.yaml")


def test_all_mistakes_of_a_file_are_told_at_once(refused, tmp_path):
    written(
        tmp_path, CHIP, ("energy: 4.6 pJ", "enrgy: 4.6 pJ"), ("64 KiB", "64"), ("bits: 32", "bits: 0"),
        name="chip.yaml",
    )  # fmt: skip
    said = refused("hardware", "check", "chip.yaml")
    assert said == (
        "chip.yaml:11: arithmetic.1.enrgy is not a field; did you mean 'energy'?; "
        "line 8: levels.SRAM.capacity: 64 has no unit; write a size as in '64 KiB', or 'unlimited'; "
        "line 11: arithmetic.1.bits 0: must be at least 1"
    )


@given(st.binary(max_size=60), st.data())
@settings(max_examples=300, deadline=None)
def test_E2_no_other_bytes_bear_a_part_s_seal(content, data):
    """Whatever is cut, put in, doubled or changed; and the right bytes under another number."""
    from hwmodel.vary.sweep.parts import Folder

    with tempfile.TemporaryDirectory() as place:
        folder = Folder(Path(place), Path(place) / "t.csv", "digest")
        text = content.decode("latin-1")
        folder.store(0, text)
        whole = folder.part(0).read_bytes()
        assert folder.read(0) == text and folder.missing(1) == []
        at = data.draw(st.integers(0, len(whole)))
        to = data.draw(st.integers(at, len(whole)))
        spoiled = whole[:at] + data.draw(st.binary(max_size=80)) + whole[to:]
        folder.part(0).write_bytes(spoiled)
        folder.part(1).write_bytes(whole)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert folder.missing(2) == ([1] if spoiled == whole else [0, 1])
