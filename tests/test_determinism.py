"""The same input gives the same bytes, whatever the hash seed, the locale and the time zone.

What else every command prints and writes: `test_surroundings.py`.
"""

import json
import os
import subprocess
import sys

import pytest

FULL = (
    "report",
    "conv-small",
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
    {"PYTHONHASHSEED": "1", "LC_ALL": "de_DE.UTF-8", "TZ": "Asia/Kathmandu"},
    {"PYTHONHASHSEED": "4294967295", "LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8", "TZ": "America/St_Johns",
     "PYTHONUTF8": "0", "PYTHONOPTIMIZE": "1"},
]  # fmt: skip
# As a program that embeds this does: without the first line a process has its numbers from C.
PROGRAM = """
import json, locale, sys
try:
    locale.setlocale(locale.LC_ALL, "")
except locale.Error:  # is not there
    pass
from hwmodel.cli import main
for words in json.loads(sys.argv[1]):
    sys.argv = ["hwmodel", *words]
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
"""
ENDINGS = ("html", "md", "tex", "json", "parquet", "xlsx")


def said(commands, place, cwd):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))} | place
    command = [sys.executable, "-c", PROGRAM, json.dumps(commands)]
    return subprocess.Popen(
        command, cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


@pytest.mark.parametrize("place", PLACES[1:], ids=["German", "Turkish"])
def test_numbers_of_these_places_have_a_comma(locales, place):
    """Else the tests below would say nothing of locales."""
    program = "import locale; locale.setlocale(locale.LC_ALL, ''); print(f'{1.5:n}')"
    done = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | locales | place, capture_output=True
    )
    if done.returncode:
        pytest.skip("the system has neither this locale nor the means to make it")
    assert done.stdout == b"1,5\n"


def test_a_table_has_the_same_bytes_everywhere(tmp_path, locales, afresh):
    running = [said([FULL], locales | place, tmp_path) for place in PLACES]
    results = [process.communicate() for process in running]
    assert {process.returncode for process in running} == {0}
    assert len(results[0][0]) > 1000
    assert results[0] == results[1]
    assert results[0][0] == results[2][0]


@pytest.fixture(scope="module")
def folders(tmp_path_factory, locales):
    """A file of every ending in a folder for each place, under a name of its own."""
    asked = ("compare", "mlp-784-512-512-10", "--hardware", "ascend", "--methods", "fp,bold",
             "--accounting", "paper", "--optimal-tiles", "no")  # fmt: skip
    made = [tmp_path_factory.mktemp(f"{number}-") for number, _ in enumerate(PLACES)]
    running = []
    for number, (place, folder) in enumerate(zip(PLACES, made, strict=True)):
        to = {ending: "--html" if ending == "html" else "-o" for ending in ENDINGS}
        commands = [(*asked, word, f"made{number}.{ending}") for ending, word in to.items()]
        running.append(said(commands, locales | place, folder))
    answers = [process.communicate() for process in running]
    assert {process.returncode for process in running} == {0}, answers
    return made


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_has_the_same_bytes_everywhere(folders, ending):
    """Written from another folder under another name, too."""
    first, second, third = (
        (folder / f"made{number}.{ending}").read_bytes() for number, folder in enumerate(folders)
    )
    assert first == second == third
    assert len(first) > 100
