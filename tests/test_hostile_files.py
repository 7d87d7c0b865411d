"""Outputs under a full disk, interruptions and rivals; inputs that point elsewhere."""

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
import unicodedata
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

from hwmodel import evaluate
from hwmodel.rerun.tables import read_csv
from tests.specs import CHIP, METHOD, NETWORK, written

LOOP = """
import sys
from pathlib import Path
from hwmodel.specs.files import whole_file
path, word = Path(sys.argv[1]), sys.argv[2]
print("ready", flush=True)
while True:
    with whole_file(path) as stream:
        for _ in range(50):
            stream.write(word * 1000)
"""
SEARCHED = ("compare", "mlp-784-512-512-10", "--hardware", "ascend", "--methods", "fp,bold")
COMPARE = (*SEARCHED, "--accounting", "paper", "--optimal-tiles", "no")


def started(folder, *words, code=None, **options):
    command = [sys.executable, *(["-c", code] if code else ["-m", "hwmodel"]), *map(str, words)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    environment["HWMODEL_CACHE"] = "off"  # a command that is interrupted must have begun a search
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    return subprocess.Popen(command, cwd=folder, env=environment, text=True, **pipes)


def listed(folder):
    return sorted(path.name for path in folder.iterdir())


def whole(text):
    """Whether a text is what one writer of `LOOP` writes."""
    return len(text) == 50_000 and len(set(text)) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_end_at_any_moment_leaves_the_old_file_or_the_new(tmp_path, number):
    """Two writers of one file at once, ended at random moments."""
    moments = random.Random(1)
    path = tmp_path / "file"
    path.write_text("a" * 50_000)
    code = LOOP if number == signal.SIGINT else (
        "import signal\nfrom hwmodel.cli import _terminated\n"
        f"signal.signal({int(number)}, _terminated)\n{LOOP}"
    )  # fmt: skip
    for _ in range(3):
        writers = [started(tmp_path, path, word, code=code) for word in "ab"]
        for writer in writers:
            assert writer.stdout.readline() == "ready\n"
        for _ in range(20):
            assert whole(path.read_text())
            time.sleep(moments.uniform(0, 0.004))
        for writer in writers:
            writer.send_signal(number)
            writer.communicate()
        assert listed(tmp_path) == ["file"]
        assert whole(path.read_text())


def test_ctrl_c_in_a_command_ends_it_with_130_and_no_traceback(tmp_path):
    """Whenever it comes after the start: 130 and nothing half, or all is done."""
    for delay in (0.1, 0.3, 0.6, 1.2):
        process = started(tmp_path, *SEARCHED, "--out", "o")
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
        begun = "hwmodel: " in err or "__main__.py" in err
        if not begun and process.returncode in (1, -signal.SIGINT):
            continue  # Python had not yet come to our first line
        assert process.returncode in (0, 130), err
        assert process.returncode == 0 or err.startswith(
            "hwmodel: interrupted: no file is half written"
        )
        folder = tmp_path / "o"
        assert not [name for name in (listed(folder) if folder.exists() else []) if name[0] == "."]


HIDDEN = """
import os, sys, time
from hwmodel.cli import _prepare
_prepare()
class Late:
    def __del__(self):
        os.kill(os.getpid(), int(sys.argv[1]))
        for _ in range(100):
            pass
late = Late()
del late  # what is raised there is ignored
print("went on", flush=True)
for _ in range(600):
    time.sleep(0.1)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_end_that_comes_where_nothing_can_be_raised_is_not_lost(tmp_path, number):
    """As in a callback from C, which the compiler of searches makes."""
    process = started(tmp_path, int(number), code=HIDDEN)
    out, err = process.communicate(timeout=60)
    assert out == "went on\n" and "ignored" not in err
    assert process.returncode in {signal.SIGTERM: (143,), signal.SIGINT: (1, 130, -2)}[number]


RAISED = """
import os, signal, sys, time
import hwmodel.cli as cli
class Late:
    def __del__(self):
        os.kill(os.getpid(), int(sys.argv[1]))
        for _ in range(100):
            pass
def called():
    late = Late()
    del late
    raise RuntimeError("no compiled object yet")
cli._called = called
cli.main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_a_library_makes_of_a_hidden_end_is_that_end(tmp_path, number):
    """As the compiler of searches, whose own error came before the end was asked for again."""
    process = started(tmp_path, int(number), code=RAISED)
    _, err = process.communicate(timeout=60)
    assert process.returncode == {signal.SIGTERM: 143, signal.SIGINT: 130}[number]
    assert "Traceback" not in err and "compiled" not in err


def test_a_file_that_may_not_grow_is_one_line_and_the_old_one_stays(tmp_path):
    """As on a full disk: writing fails in the middle."""
    (tmp_path / "x.csv").write_text("old")

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))

    process = started(tmp_path, *COMPARE, "--csv", "x.csv", preexec_fn=limit)
    _, err = process.communicate()
    assert process.returncode == 2
    assert err.splitlines()[-1] == "hwmodel: x.csv: cannot be written: File too large"
    assert "Traceback" not in err
    assert listed(tmp_path) == ["x.csv"] and (tmp_path / "x.csv").read_text() == "old"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_device_is_one_line(tmp_path):
    process = started(tmp_path, *COMPARE, "--csv", "/dev/full")
    _, err = process.communicate()
    assert (process.returncode, err.splitlines()[-1]) == (
        2, "hwmodel: /dev/full: cannot be written: No space left on device"
    )  # fmt: skip
    with open("/dev/full", "w") as full:
        process = started(tmp_path, *COMPARE, "--csv", "-", stdout=full)
        _, err = process.communicate()
    assert process.returncode == 2 and "Traceback" not in err
    assert err.splitlines()[-1].startswith("hwmodel: ") and "No space left" in err.splitlines()[-1]


@pytest.mark.parametrize(
    "words",
    [("--help",), ("network", "list"), ("sweep", "--help"), COMPARE, (*COMPARE, "--csv", "-")],
)
@pytest.mark.parametrize("read", [0, 20])
def test_a_pipe_without_a_reader_ends_a_command_quietly(tmp_path, words, read):
    """With the exit code that shells give to a program that SIGPIPE ends."""
    out, into = os.pipe()
    if not read:
        os.close(out)
    process = started(tmp_path, *words, stdout=into)
    os.close(into)
    if read:  # as `head -1`: what comes at once may fit into the pipe, which is no failure
        assert len(os.read(out, read)) == read
        os.close(out)
    _, err = process.communicate()
    assert process.returncode == 128 + signal.SIGPIPE or (read and process.returncode == 0)
    assert "Traceback" not in err and "Broken" not in err and "Exception" not in err
    left = [line for line in err.splitlines() if not line.startswith("wrote ")]
    assert read or left == []  # what goes to files goes there


# Inputs

ODD = [".onnx", "a [1].onnx", "[bold].onnx", "A.ONNX", "a b.onnx", "a\nb.onnx", "\udcff.onnx",
       "a\x1b[31m.onnx", "=1.onnx", "\u2500.onnx", "<b>&'.onnx", "$x$.onnx",
       f"{'a' * 250}.onnx"]  # fmt: skip


def energies_of(hwmodel, folder, name):
    """Of the report of a file; all that it prints and writes is UTF-8 without control characters."""
    code, out, err = hwmodel("report", name, "--hardware", "ascend", "--method", "fp",
                             "--out", "o", "--html", "o/x.html", "--accounting", "paper")  # fmt: skip
    assert code == 0, err
    printed = out + err
    for made in (folder / "o").iterdir():
        printed += made.read_bytes().decode("utf-8") if made.suffix != ".png" else ""
        if made.suffix == ".svg":
            ElementTree.parse(made)
    assert not [c for c in printed if unicodedata.category(c) in ("Cc", "Cs") and c != "\n"]
    (csv,) = (folder / "o").glob("*.csv")
    return [row["energy"] for row in read_csv(csv)[1]]


@pytest.mark.parametrize("name", ODD, ids=ascii)
def test_a_file_may_have_any_name(hwmodel, tmp_path, name):
    """Its network is the same."""
    pytest.importorskip("onnx")
    from tests.test_import_onnx import node, save

    plain = save(tmp_path, [node("MatMul", "x w")], {"x": [1, 8]}, {"w": (8, 4)})
    table = evaluate(plain, "ascend", "fp", accounting="paper")
    plain.rename(tmp_path / name)
    energies = list(map(float, energies_of(hwmodel, tmp_path, name)))
    assert energies == list(table.table["energy"]) != []


@pytest.mark.parametrize("name", ["\udcff", "a\x1b[31m", "a\nb", "a b", "[bold]"], ids=ascii)
def test_so_may_an_output_and_a_file_that_is_not_there(hwmodel, refused, tmp_path, name):
    shown = name.encode("unicode_escape").decode()
    report = ("report", "mlp-784-512-512-10", "--hardware", "ascend", "--method", "fp",
              "--accounting", "paper")  # fmt: skip
    for ending in (".csv", ".json", ".md", ".html"):
        option = "--html" if ending == ".html" else "-o"
        code, out, err = hwmodel(*report, option, name + ending)
        assert (code, err) == (0, f"wrote {shown}{ending}\n")
        assert (tmp_path / (name + ending)).exists()
        assert name.isprintable() or name not in out
    assert hwmodel("verify", f"{name}.csv")[0] == 0
    assert hwmodel("plot", f"{name}.csv", "-o", f"{name}.svg")[2] == f"wrote {shown}.svg\n"
    assert shown in refused("hardware", "check", f"{name}.yaml").replace("\\\\", "\\")
    assert shown in refused("best", f"{name}.none")
    (tmp_path / f"{name}.yaml").write_text(CHIP)
    assert hwmodel("hardware", "check", f"{name}.yaml")[1].startswith(f"{shown}.yaml: hardware")


@pytest.mark.parametrize("name", ["=1+1", "@SUM(A1)", "+1", "-2+3", "|calc"])
def test_no_name_in_a_table_begins_as_a_formula(refused, tmp_path, name):
    quoted = json.dumps(name)
    rule = "must match ^[A-Za-z0-9][A-Za-z0-9_.+-]*$"
    for old, field in (
        ("name: net", "name"),
        ("name: conv1", "layers.*.name"),
        ("name: fc1", "layers.*.name"),
    ):
        written(tmp_path, NETWORK, (old, f"name: {quoted}"), name="net.yaml")
        said = refused("network", "check", "net.yaml")
        assert said.endswith(f"{name!r}: {rule}"), field
    for text, word, old in ((CHIP, "hardware", "name: SRAM"), (METHOD, "method", "name: mine")):
        written(tmp_path, text, (old, f"name: {quoted}"), name="spec.yaml")
        assert refused(word, "check", "spec.yaml").endswith(f"{name!r}: {rule}")
    written(tmp_path, METHOD, ("what: scaling", f"what: {quoted}"), name="spec.yaml")
    assert refused("method", "check", "spec.yaml").endswith(
        f"what {name!r}: must match ^[A-Za-z0-9]"
    )


@pytest.mark.parametrize("name", ["../fp", "/etc/passwd", "fp/../fp", "..", "fp.yaml"])
def test_a_method_refers_to_bundled_ones_only(refused, tmp_path, name):
    written(tmp_path, METHOD, ("precision: fp", f"precision: {json.dumps(name)}"), name="mine.yaml")
    said = refused("method", "check", "mine.yaml")
    assert "must match" in said or "no method is called" in said


def test_a_checkpoint_with_a_pickle_in_it_is_refused_and_not_run(tmp_path, monkeypatch):
    import numpy as np

    from hwmodel.errors import HwmodelError
    from hwmodel.trainer import checkpoint

    class Evil:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "run"),)

    path = tmp_path / "trace.checkpoint.npz"
    np.savez(path, values=np.array([Evil()], dtype=object), allow_pickle=True)
    with pytest.raises(HwmodelError):
        checkpoint.restore(path, SimpleNamespace(nodes=(), limiters={}), None)
    assert not (tmp_path / "run").exists()


def test_a_tensor_s_file_outside_the_folder_is_never_opened(tmp_path, reported):
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper

    weights = onnx.TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4, 3, 3, 3])
    weights.data_location = TensorProto.EXTERNAL
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)  # opening it would wait for ever
    weights.external_data.add(key="location", value="../folder/../pipe")
    node = helper.make_node("Conv", ["x", "w"], ["y"], name="c")
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4, 6, 6])]
    graph = helper.make_graph([node], "g", inputs, outputs, [weights])
    (tmp_path / "folder").mkdir()
    onnx.save(helper.make_model(graph), tmp_path / "folder" / "m.onnx")
    rows = reported("folder/m.onnx", "--mode", "inference")
    assert sum(int(row["count"]) for row in rows if row["operation"]) == 4 * 27 * 36
