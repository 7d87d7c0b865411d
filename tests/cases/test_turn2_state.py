"""E: files and state. What is damaged is made anew or refused in a line; streams may be closed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import hwmodel as package
from tests.specs import CHIP, written

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
        "hwmodel: warning: t.csv.parts: 1 part of 6 (part): damaged, or made by other code; "
        "made anew"
    )


def test_E2_parts_that_are_as_they_were_are_used(hwmodel, tmp_path, begun, monkeypatch):
    """Nothing is computed again, and nothing is said."""
    whole, _ = begun
    monkeypatch.setattr("hwmodel.vary.sweep.run.run_part", None)
    code, _, err = hwmodel(*SWEPT, "--resume")
    assert (code, err) == (0, "wrote t.csv\n")
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
        file.write_text(text.replace("accuracy_percent: 90.29", "accuracy_percent: 91.29"))
    assert file.read_text() != text
    run = program(*SWEPT, "--resume", cwd=place, code=code)
    assert run.returncode == 0, run.stderr
    resumed = (place / "t.csv").read_text()
    assert "6 parts of 6 (part): damaged, or made by other code; made anew" in run.stderr
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
        ("accounting.preactivation_words: {times: [1e308]}", "must be at most 16"),
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
        "sensitivity", "mlp-784-512-512-10", "--hardware", "chip.yaml", "--methods", "bold"
    )
    assert said in line


def test_E5_and_a_range_of_more_than_all_numbers(refused, tmp_path):
    (tmp_path / "r.yaml").write_text("hardware.levels.L1.read_energy: [1e-300, 1e100]\n")
    words = ("mlp-784-512-512-10", "--hardware", "ascend", "--methods", "bold", "--samples", "2")
    line = refused("sensitivity", *words, "--ranges", "r.yaml")
    assert "needs 0 < low <= high" in line


# E6: bounds on memory

LEAST, MOST = 10**9, 30  # bytes; seconds of the processor, on a machine that is slow
SWEPT_COLUMNS = "point,network,accounting,method,mode,batch,hardware,energy,unit,reason"
MADE = "version,inputs_sha256,command"


def used(*arguments, cwd):
    """Exit code, what is said, bytes of memory and seconds of the processor of a command."""
    folder = str(Path(package.__file__).parent.parent)
    with (cwd / "said").open("w+") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "hwmodel", *arguments], cwd=cwd, stdout=said, stderr=said,
            env=os.environ | {"PYTHONPATH": folder},
        )  # fmt: skip
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        return process.returncode, said.read(), 1024 * usage.ru_maxrss, usage.ru_utime


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
    assert code == 0 and "\n100,000 points" in said
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
def test_E7_a_pipe_is_refused(tmp_path, words):
    """As a process: that a pipe is waited for must not stop the tests."""
    for ending in ("yaml", "json", "parquet", "onnx"):
        os.mkfifo(tmp_path / f"p.{ending}")
    run = program(*words, cwd=tmp_path)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith("hwmodel: p.") and "pipe" in run.stderr
    assert run.stderr.count("\n") == 1


def test_E7_so_is_one_that_a_table_names(hwmodel, tmp_path):
    written(tmp_path, CHIP, name="chip.yaml")
    words = ("report", "mlp-784-512-512-10", "--hardware", "chip.yaml", "--method", "fp")
    assert hwmodel(*words, "--csv", "t.csv")[0] == 0
    (tmp_path / "chip.yaml").unlink()
    os.mkfifo(tmp_path / "chip.yaml")
    run = program("verify", "t.csv", cwd=tmp_path)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.splitlines()[-1] == "hwmodel: chip.yaml: is no file, but a device or a pipe"


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
