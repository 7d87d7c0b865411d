"""Tables of a sweep that somebody changed: what is read back, and what is refused in a sentence."""

import pytest

HEAD = "point,network,hardware,method,accounting,batch,baseline,mode,energy,unit,reason"
ROWS = ["0,n,h,m,a,1,fp,training,2.5,pJ,", "1,n,h,m,a,2,fp,training,0.5,pJ,"]
BEYOND = "1" + "0" * 400


@pytest.fixture
def best(hwmodel, tmp_path):
    """`best` of a table in which one text stands in the place of another."""

    def asked(old="", new="", *options):
        from hwmodel.vary.sweep.plan import NAMES

        assert {*NAMES} <= {*HEAD.split(",")}
        text = "\n".join([HEAD, *ROWS]) + "\n"
        assert old in text
        (tmp_path / "t.csv").write_text(text.replace(old, new))
        return hwmodel("best", "t.csv", "--csv", "-", *options)

    return asked


def test_the_least_stands_first(best):
    code, out, err = best()
    assert (code, err) == (0, "")
    assert out.splitlines() == ["point,batch,energy,unit", "1,2,0.5,pJ", "0,1,2.5,pJ"]


def test_the_screen_states_units_and_the_file_has_every_digit(hwmodel, tmp_path):
    head, path = HEAD.replace("energy,", "energy,forward,"), "hardware.levels.L1.capacity"
    rows = [
        "0,n,h,m,a,1,fp,training,1.5e8,5e7,pJ,,8192",
        "1,n,h,m,a,1,fp,training,3e8,1e8,pJ,,4096",
    ]
    (tmp_path / "t.csv").write_text("\n".join([f"{head},{path}", *rows]) + "\n")
    _, out, _ = hwmodel("best", "t.csv", "--by", "forward")
    lines = [[cell.strip() for cell in line[1:-1].split(line[0])] for line in out.splitlines()[2:]]
    assert lines[0] == ["point", path, "forward, µJ", "energy, µJ"]
    assert lines[2:4] == [["0", "1 KiB", "50", "150"], ["1", "512 B", "100", "300"]]
    _, out, _ = hwmodel("best", "t.csv", "--by", "forward", "--csv", "-")
    assert out.splitlines()[1] == "0,8192,50000000.0,150000000.0,pJ"
    mixed = (tmp_path / "t.csv").read_text().replace("pJ,,4096", "MAC (fp32),,4096")
    (tmp_path / "t.csv").write_text(mixed)
    _, out, _ = hwmodel("best", "t.csv", "--by", "batch")
    assert "1.5e+08 │ pJ" in out and "3e+08 │ MAC (fp32)" in out
    (tmp_path / "t.csv").write_text(mixed.replace("MAC (fp32)", "pJ").replace("3e8", "x"))
    _, out, err = hwmodel("best", "t.csv", "--by", "batch")
    assert "x" in out.splitlines()[5] and "150000000" not in err


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("2.5", "nan", "t.csv: column energy holds what is no finite number"),
        ("2.5", "-inf", "t.csv: column energy holds what is no finite number"),
        ("2.5", "1e999", "t.csv: column energy holds what is no finite number"),
        ("a,1,", "a,nan,", "t.csv: column batch holds what is no finite number"),
        ("0,n", ",n", "t.csv: column point must hold a whole number in every row"),
        ("0,n", "0.5,n", "t.csv: column point must hold a whole number in every row"),
        ("0,n", "x,n", "t.csv: column point must hold a whole number in every row"),
        ("2.5", "x", "column energy holds 'x'; numbers are needed"),
        ("2.5,pJ", "2.5,J", "t.csv: unit 'J' is none: pJ, or MAC with its format, as in 'MAC (fp32)'"),
        ("2.5,pJ", "2.5,", "t.csv: unit None is none: pJ, or MAC with its format, as in 'MAC (fp32)'"),
        ("2.5,pJ", "2.5,MAC", "t.csv: unit 'MAC' does not say of which MAC, as tables of before did; make it anew"),
    ],
)  # fmt: skip
def test_what_is_no_number_is_refused(best, old, new, sentence):
    assert best(old, new) == (2, "", f"hwmodel: {sentence}\n")


def test_a_whole_number_that_no_double_holds_is_refused(best):
    assert best("a,1,", f"a,{BEYOND},", "--by", "batch") == (
        2, "", "hwmodel: column batch holds a number beyond 1e308\n",
    )  # fmt: skip


def test_a_parquet_file_is_held_to_the_same(hwmodel, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    names = HEAD.split(",")
    cells = [
        [0, 1],
        *([["x", "x"]] * (len(names) - 4)),
        [1.0, float("nan")],
        ["pJ", "pJ"],
        [None, None],
    ]
    parquet.write_table(pyarrow.table(dict(zip(names, cells, strict=True))), tmp_path / "t.parquet")
    assert hwmodel("best", "t.parquet") == (
        2, "", "hwmodel: t.parquet: column energy holds what is no finite number\n",
    )  # fmt: skip
    cells[-3], cells[1] = [1.0, 2.0], pyarrow.array(["x", "a\x1b[2J"]).dictionary_encode()
    parquet.write_table(pyarrow.table(dict(zip(names, cells, strict=True))), tmp_path / "t.parquet")
    assert hwmodel("best", "t.parquet") == (
        2, "", "hwmodel: t.parquet: column network holds a control character\n",
    )  # fmt: skip


TEXT = "\n".join([HEAD, *ROWS]) + "\n"
MADE = ("version,inputs_sha256,command", "9,x,c", "9,x,c")
STATED = "".join(f"{line},{made}\n" for line, made in zip((HEAD, *ROWS), MADE, strict=True))


@pytest.mark.parametrize(
    "content",
    [
        TEXT.encode("utf-8-sig"),
        TEXT.replace("\n", "\r\n").encode(),
        TEXT.replace("\n", "\r\n").encode("utf-8-sig"),
        TEXT.replace("point,network", '"point","network"').encode(),
        TEXT.rstrip("\n").encode(),
    ],
    ids=["mark", "line ends", "both", "quoted", "no last line end"],
)
def test_a_table_that_a_spreadsheet_saved_is_the_same_table(hwmodel, tmp_path, content):
    (tmp_path / "t.csv").write_bytes(content)
    code, out, _ = hwmodel("best", "t.csv", "--csv", "-")
    assert (code, out.splitlines()) == (0, ["point,batch,energy,unit", "1,2,0.5,pJ", "0,1,2.5,pJ"])
    assert hwmodel("plot", "t.csv", "-o", "t.svg", "--kind", "lines", "--x", "batch")[0] == 0


@pytest.mark.parametrize("command", [("best",), ("verify",), ("plot", "-o", "t.svg")])
@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (TEXT.replace(",", ";").encode(), "t.csv:1: is separated by semicolons; commas are"),
        (TEXT.replace(",", "\t").encode("utf-8-sig"), "t.csv:1: is separated by tabs; commas are"),
        (b"sep=;\n" + TEXT.replace(",", ";").encode(), "t.csv:1: is separated by semicolons"),
        (TEXT.encode("utf-16"), "t.csv: is not a CSV file: it is UTF-16; UTF-8 is expected"),
        (
            STATED.replace("0,n", "0,a\x1b[2J").encode(),
            "t.csv:2: has the control character '\\x1b'",
        ),
        (STATED.replace("1,n", "1,\0").encode(), "t.csv:3: has the control character '\\x00'"),
        (
            STATED.replace("1,n", "1,\uffff").encode(),
            "t.csv:3: has the control character '\\uffff'",
        ),
        (None, "t.csv: cannot be read: No such file or directory"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(refused, tmp_path, command, content, sentence):
    if content is not None:
        (tmp_path / "t.csv").write_bytes(content)
    assert refused(command[0], "t.csv", *command[1:]).startswith(sentence)
    assert not (tmp_path / "t.svg").exists()


def test_a_file_that_is_not_there_is_no_wrong_table(refused):
    said = refused("plot", "missing.csv", "-o", "t.svg", "--x", "energy")
    assert said == "missing.csv: cannot be read: No such file or directory"
