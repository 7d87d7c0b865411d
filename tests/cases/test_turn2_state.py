"""E: files and state. What is damaged is made anew or refused in a line; streams may be closed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import hwmodel as package

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
