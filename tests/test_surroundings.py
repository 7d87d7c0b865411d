"""What lies around a command moves none of its outputs: settings, locale, streams, worker counts."""

import io
import json
import os
import subprocess
import sys

import pytest

from hwmodel.cli import main

MLP = "mlp-784-512-512-10 --hardware ascend --accounting paper"
JOBS = (  # {n}: files are called otherwise in the other place, as its folder is
    f"compare {MLP} --methods fp,binaryconnect,bold --out compared",
    f"report {MLP} --method bold -o {{n}}.csv",
    "plot {n}.csv -o {n}.pdf",
    f"explain {MLP} --method bold --layer fc2",
    "sensitivity n.yaml --hardware ascend --accounting paper --methods fp,bold --samples 2 --csv - --jobs {jobs}",
    "tile --hardware ascend --conv N=2,M=8,C=4,H=7,W=7,K=3,pad=1 --bits 16,16,16",
    "network show deep-mlp",
    "sweep sweep.yaml --out {n}.sweep.csv --jobs {jobs}",
    "best {n}.sweep.csv --csv -",
    "plot {n}.sweep.csv -o {n}.svg --kind lines --x batch",
)
SWEEP = """
{version: 1, name: s, title: t, network: mlp-784-512-512-10, hardware: ascend, method: [fp, bold],
 accounting: paper, axes: [{batch: [1, 2]}]}
"""
SETTINGS = "axes.formatter.use_locale: True\naxes.facecolor: red\nlines.linewidth: 9\n"
HERE = {"PYTHONHASHSEED": "0", "LC_ALL": "C", "TZ": "UTC"}
THERE = {"PYTHONHASHSEED": "7", "LC_ALL": "fr_FR.ISO-8859-1", "TZ": "Pacific/Chatham",
         "MPLBACKEND": "nonsense"}  # fmt: skip
PROGRAM = """
import contextlib, json, locale, shlex, sys
from hwmodel.cli import main

with contextlib.suppress(locale.Error):
    locale.setlocale(locale.LC_ALL, "")  # as few programs do, and Python alone does not
encoding, *jobs = json.loads(sys.argv[1])
for number, job in enumerate(jobs):
    sys.argv = ["hwmodel", *shlex.split(job)]
    with open(f"printed{number}", "w", encoding=encoding) as out, contextlib.redirect_stdout(out):
        try:
            main()
        except SystemExit as end:
            if end.code:
                sys.exit(f"{job}: exit code {end.code}")
with open("place", "w") as file:
    json.dump([locale.str(0.5), hash("x")], file)
"""


@pytest.fixture(scope="module")
def folders(tmp_path_factory, locales):
    """All that the jobs print and write, in two places at once."""
    made = tmp_path_factory.mktemp("here"), tmp_path_factory.mktemp("there")
    (made[1] / "matplotlibrc").write_text(SETTINGS)  # read from the present folder
    path = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "HWMODEL_CACHE": "off"}
    running = []
    for folder, place, encoding in zip(
        made, (HERE, THERE | locales), ("utf-8", "latin-1"), strict=True
    ):
        (folder / "sweep.yaml").write_text(SWEEP)
        (folder / "n.yaml").write_text(NETWORK)
        jobs = [job.format(n=f"in-{folder.name}", jobs=len(running) + 1) for job in JOBS]
        command = [sys.executable, "-c", PROGRAM, json.dumps([encoding, *jobs])]
        running.append(
            subprocess.Popen(
                command, cwd=folder, env=os.environ | path | place, stderr=subprocess.PIPE
            )
        )
    said = [process.communicate()[1] for process in running]
    assert [process.returncode for process in running] == [0, 0], said
    return made


def content(folder):
    apart = ("place", "matplotlibrc")
    return {
        path.relative_to(folder).as_posix().replace(f"in-{folder.name}", "made"): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in apart
    }


def test_no_output_is_moved(folders):
    here, there = map(content, folders)
    assert [name for name in here | there if here.get(name) != there.get(name)] == []


def test_there_are_outputs_of_every_kind(folders):
    here = content(folders[0])
    assert {"made.csv", "made.pdf", "made.sweep.csv", "made.svg"} <= here.keys()
    drawn = {name.rpartition(".")[2] for name in here if name.startswith("compared/")}
    assert drawn == {"csv", "png", "svg"}
    for number, job in enumerate(JOBS):
        printed = here[f"printed{number}"].decode("utf-8")
        assert "{n}" in job or len(printed) > 200, job
    assert "─" in here["printed0"].decode("utf-8")  # the rule of a table, which Latin-1 lacks


def test_the_other_place_is_another(folders):
    """Otherwise the first test would try less than it says."""
    (point, one), (comma, other) = (
        json.loads((folder / "place").read_text()) for folder in folders
    )
    assert point == "0.5" and one != other
    if comma == point:
        pytest.skip(f"no locale {THERE['LC_ALL']} here, and no means to make it")
    assert comma == "0,5"


@pytest.mark.parametrize(
    ("terminal", "asked", "encoding"),
    [(False, "", "utf-8"), (True, "", "latin-1"), (False, "latin-1", "latin-1")],
    ids=["pipe", "terminal", "asked for"],
)
def test_only_pipes_and_files_are_always_utf_8(monkeypatch, terminal, asked, encoding):
    """A terminal reads its own encoding, and who sets PYTHONIOENCODING means it."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    out.isatty = lambda: terminal
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setattr("sys.argv", ["hwmodel", "network", "show", "deep-mlp"])
    monkeypatch.delenv("PYTHONIOENCODING", raising=False)
    if asked:
        monkeypatch.setenv("PYTHONIOENCODING", asked)
    with pytest.raises(SystemExit):
        main()
    out.flush()
    assert b"32 x 32" in out.buffer.getvalue()
    assert ("─".encode() in out.buffer.getvalue()) == (encoding == "utf-8")
    assert out.encoding == encoding


NETWORK = """
{version: 1, name: n, title: t, input: [1, 4, 4], layers: [{name: fc, kind: linear, features: 2}]}
"""


@pytest.mark.parametrize(
    ("kept", "link", "job"),
    [
        ("n.yaml", "l.csv", "report n.yaml --hardware ascend --method fp --csv l.csv"),
        ("n.yaml", "l.html", "report n.yaml --hardware ascend --method fp --html l.html"),
        ("s.csv", None, "sweep s.csv --out s.csv --jobs 1"),
        ("n.yaml", "l.csv", "sweep of.yaml --out l.csv --jobs 1"),
        ("c.csv", "l.svg", "plot c.csv -o l.svg"),
        ("t.csv", None, "best t.csv --top 1 --csv t.csv"),
    ],
)
def test_no_output_takes_the_place_of_an_input(tmp_path, monkeypatch, capsys, kept, link, job):
    """By the same name, or through a link: one message, and the input is as it was."""
    monkeypatch.chdir(tmp_path)
    of_network = SWEEP.replace("mlp-784-512-512-10", "n.yaml")
    for name, text in (("n.yaml", NETWORK), ("s.csv", SWEEP), ("of.yaml", of_network)):
        (tmp_path / name).write_text(text)
    before = {"c.csv": f"compare {MLP} --methods fp,bold --csv c.csv",
              "t.csv": "sweep of.yaml --out t.csv --jobs 1"}  # fmt: skip
    for command in [before[kept]] if kept in before else []:
        assert _done(monkeypatch, command) == 0
    capsys.readouterr()
    if link:
        (tmp_path / link).symlink_to(kept)
    whole = (tmp_path / kept).read_bytes()
    assert _done(monkeypatch, job) == 2
    said = capsys.readouterr().err.splitlines()
    assert (tmp_path / kept).read_bytes() == whole
    assert len(said) == 1 and "would be written over" in said[0]


def _done(monkeypatch, command):
    monkeypatch.setattr(sys, "argv", ["hwmodel", *command.split()])
    with pytest.raises(SystemExit) as end:
        main()
    return end.value.code


def test_a_trace_without_end_is_refused(monkeypatch, capsys):
    job = "report mlp-784-512-512-10 --hardware ascend --method bold --trace /dev/zero"
    assert _done(monkeypatch, job) == 2
    assert "/dev/zero: is no file, but a device or a pipe" in capsys.readouterr().err


@pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="no such device")
def test_a_pipe_without_a_path_is_written_to():
    """/dev/stdout leads to pipe:[1234], which no folder has."""
    job = ["network", "show", "conv-small", "--csv"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    run = [
        subprocess.run([sys.executable, "-m", "hwmodel", *job, to], capture_output=True, text=True,
                       env=environment, check=False)
        for to in ("-", "/dev/stdout")
    ]  # fmt: skip
    assert [one.returncode for one in run] == [0, 0]
    assert run[0].stdout and run[0].stdout in run[1].stdout
