"""The same input gives the same bytes, whatever the hash seed, the locale and the time zone."""

import os
import subprocess
import sys

import pytest

JOB = (
    "compare",
    "vgg-small",
    "--hardware",
    "ascend,v100",
    "--methods",
    "fp,binaryconnect,bold",
    "--csv",
    "-",
)
FULL = (
    "report",
    "resnet18",
    "--hardware",
    "ascend",
    "--method",
    "bold-bn",
    "--accounting",
    "full",
    "--csv",
    "-",
)
PLACES = [
    {"PYTHONHASHSEED": "0", "LC_ALL": "C", "TZ": "UTC"},
    {"PYTHONHASHSEED": "1", "LC_ALL": "de_DE.UTF-8", "TZ": "Asia/Kathmandu"},  # decimal comma, if it is there
    {"PYTHONHASHSEED": "4294967295", "LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8", "TZ": "America/St_Johns",
     "PYTHONUTF8": "0", "PYTHONOPTIMIZE": "1"},
]  # fmt: skip


def said(arguments, place, cwd):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))} | place
    command = [sys.executable, "-m", "hwmodel", *arguments]
    return subprocess.Popen(
        command, cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


@pytest.mark.parametrize("arguments", [JOB, FULL], ids=["compare", "report"])
def test_a_table_has_the_same_bytes_everywhere(tmp_path, arguments):
    running = [said(arguments, place, tmp_path) for place in PLACES]
    results = [process.communicate() for process in running]
    assert {process.returncode for process in running} == {0}
    assert len(results[0][0]) > 1000
    assert results[0] == results[1]
    assert results[0][0] == results[2][0]


@pytest.mark.parametrize("ending", ["html", "md", "tex", "json", "parquet", "xlsx"])
def test_a_file_has_the_same_bytes_everywhere(tmp_path, ending):
    """Written from another folder under another name, too."""
    asked = ("compare", "mlp-784-512-512-10", "--hardware", "ascend", "--methods", "fp,bold")
    to = ("--html",) if ending == "html" else ("-o",)
    folders = [tmp_path / f"{number}" for number, _ in enumerate(PLACES)]
    running = []
    for number, (place, folder) in enumerate(zip(PLACES, folders, strict=True)):
        folder.mkdir()
        running.append(said((*asked, *to, f"made{number}.{ending}"), place, folder))
    answers = [process.communicate() for process in running]
    assert {process.returncode for process in running} == {0}, answers
    first, second, third = (
        (folder / f"made{number}.{ending}").read_bytes() for number, folder in enumerate(folders)
    )
    assert first == second == third
    assert len(first) > 100


def test_a_process_that_sets_its_own_locale_gets_the_same_bytes(hwmodel, tmp_path):
    """As a program that embeds this does: numbers are not written by the locale's rules."""
    import locale

    asked = (
        "compare",
        "mlp-784-512-512-10",
        "--hardware",
        "ascend",
        "--methods",
        "fp,bold",
        "--csv",
        "-",
    )
    plain = hwmodel(*asked)
    before = locale.setlocale(locale.LC_ALL)
    names = ("de_DE.UTF-8", "fr_FR.UTF-8", "C.UTF-8")
    try:
        for name in names:
            try:
                locale.setlocale(locale.LC_ALL, name)
            except locale.Error:
                continue
            break
        assert hwmodel(*asked) == plain
    finally:
        locale.setlocale(locale.LC_ALL, before)
