"""Bundles: a table and its inputs in one file, computed anew where nothing else is there."""

import hashlib
import json
import os
import shutil
import stat
import struct
import zipfile
from pathlib import Path

import pytest

import hwmodel as package
from hwmodel.rerun import lock as bounds
from hwmodel.rerun import unbundle
from hwmodel.specs.inputs import inputs_kept, is_input, note_input, read_from, read_text
from hwmodel.specs.trace import write_trace
from tests.specs import ACCOUNTING, CHIP, GREEDY, METHOD, NETWORK, written
from tests.test_verify import SWEPT, edited
from tests.traces import trace

COMPARE = ("compare", "net.yaml", "--hardware", "chip.yaml", "--methods", "fp,own.yaml")
ASKED = {
    "report": ("report", "net.yaml", "--hardware", "chip.yaml", "--method", "own.yaml"),
    "compare": (*COMPARE, "--accounting", "accounting.yaml,full", "--training", "cifar10-300"),
    "reproduce": ("reproduce", "cifar10_vgg_small", "--accounting", "paper,accounting.yaml"),
}
INPUTS = {
    "report": ["chip.yaml", "net.yaml", "own.yaml"],
    "compare": ["accounting.yaml", "chip.yaml", "net.yaml", "own.yaml"],
    "reproduce": ["accounting.yaml"],
}


@pytest.fixture
def work(hwmodel, tmp_path):
    """A folder of inputs, and in it a function that makes a table and its bundle."""
    for text, name in ((CHIP, "chip"), (NETWORK, "net"), (ACCOUNTING, "accounting")):
        written(tmp_path, text, name=f"{name}.yaml")
    written(tmp_path, METHOD, name="own.yaml")

    def make(*arguments, name="t.csv", output="s.zip"):
        code, _, err = hwmodel(*arguments, "-o", name)
        assert code == 0, err
        code, _, err = hwmodel("bundle", name, "-o", output)
        assert code == 0, err
        return tmp_path / output

    return make


@pytest.fixture
def elsewhere(hwmodel, tmp_path, monkeypatch):
    """A function that verifies a bundle in an empty folder, its original files gone."""

    def verify(bundle, *more):
        other = tmp_path.parent / f"{tmp_path.name}-elsewhere"
        shutil.rmtree(other, ignore_errors=True)
        other.mkdir()
        shutil.copy(bundle, other / "x.zip")
        for path in tmp_path.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        monkeypatch.chdir(other)
        found = hwmodel("verify", "x.zip", *more)
        assert [path.name for path in other.iterdir()] == ["x.zip"]
        return found

    return verify


def inputs_of(path):
    with zipfile.ZipFile(path) as archive:
        return [given["named"] for given in json.loads(archive.read("lock.json"))["inputs"]]


@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
@pytest.mark.parametrize("command", ASKED)
def test_a_bundle_holds_in_another_folder_without_the_files(work, elsewhere, command, ending):
    path = work(*ASKED[command], name=f"t.{ending}")
    assert inputs_of(path) == INPUTS[command]
    code, out, err = elsewhere(path)
    assert code == 0, err
    verdict, first, second, third = out.splitlines()
    assert first == f"made by hwmodel {package.__version__}, as now"
    assert second.startswith("bundled by Python ") and second.endswith(", as here")
    assert third == "inputs are as they were"
    assert " rows equal, 0 moved, 0 missing, 0 extra" in verdict
    assert not verdict.startswith("0 ")


def test_so_does_a_sweep_s(work, hwmodel, elsewhere, tmp_path):
    written(tmp_path, SWEPT, name="swept.yaml")
    assert hwmodel("sweep", "swept.yaml", "--out", "s.csv", "--jobs", 1)[0] == 0
    assert hwmodel("bundle", "s.csv", "-o", "s.zip")[0] == 0
    assert inputs_of("s.zip") == ["chip.yaml", "net.yaml", "swept.yaml"]
    code, out, _ = elsewhere(tmp_path / "s.zip")
    assert code == 0 and "16 rows equal, 0 moved" in out


def test_so_do_both_tables_of_a_study(work, hwmodel, elsewhere, tmp_path):
    written(tmp_path, "accounting.extras.flip_rate: [0.001, 0.1]\n", name="ranges.yaml")
    asked = ("sensitivity", "net.yaml", "--hardware", "chip.yaml", "--methods", "fp,bold")
    written(tmp_path, GREEDY, name="greedy.yaml")
    more = ("--samples", 3, "--ranges", "ranges.yaml", "--jobs", 1, "--accounting", "greedy.yaml")
    assert hwmodel(*asked, *more, "--out", "study")[0] == 0
    tables = sorted((tmp_path / "study").glob("*.csv"))
    assert len(tables) == 2
    for number, table in enumerate(tables):
        assert hwmodel("bundle", table, "-o", f"{number}.zip")[0] == 0
        assert inputs_of(f"{number}.zip") == ["chip.yaml", "greedy.yaml", "net.yaml", "ranges.yaml"]
        shutil.copy(f"{number}.zip", tmp_path.parent / f"{tmp_path.name}-{number}.zip")
    for number in range(2):
        code, out, err = elsewhere(tmp_path.parent / f"{tmp_path.name}-{number}.zip")
        assert code == 0, err
        assert ", 0 moved, 0 missing, 0 extra" in out


def test_traces_and_onnx_files_are_bundled(work, hwmodel, elsewhere, tmp_path):
    pytest.importorskip("onnx")
    from tests.test_import_onnx import node, save

    save(tmp_path, [node("Gemm", "x w")], {"x": [1, 8]}, {"w": (8, 4)})
    write_trace(trace(), tmp_path / "trace.json")
    asked = ("compare", "model.onnx", "--hardware", "chip.yaml", "--methods", "fp,bold")
    assert inputs_of(work(*asked)) == ["chip.yaml", "model.onnx"]
    traced = ("report", "conv-small", "--hardware", "ascend", "--method", "bold")
    path = work(
        *traced, "--accounting", "full", "--trace", "trace.json", name="u.csv", output="u.zip"
    )
    assert inputs_of(path) == ["trace.json"]
    shutil.copy("s.zip", tmp_path.parent / f"{tmp_path.name}-s.zip")
    assert elsewhere(path)[0] == 0
    assert elsewhere(tmp_path.parent / f"{tmp_path.name}-s.zip")[0] == 0


def test_names_that_lead_out_of_the_folder_have_places_of_their_own(work, elsewhere, tmp_path):
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    shutil.copy(tmp_path / "net.yaml", outside / "chip.yaml")
    (tmp_path / "deep").mkdir()
    shutil.copy(tmp_path / "chip.yaml", tmp_path / "deep")
    shutil.copy(tmp_path / "own.yaml", tmp_path / "lock.json.yaml")
    network = f"../{outside.name}/chip.yaml"
    chips = f"./deep/../deep/chip.yaml,{tmp_path}/chip.yaml"
    (tmp_path / "chip.yaml").write_text(CHIP.replace("name: chip", "name: second"))
    path = work("compare", network, "--hardware", chips, "--methods", "fp,lock.json.yaml",
                name="deep/T.csv")  # fmt: skip
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    assert names[0] == "T.csv" and names[-1] == "lock.json"
    assert all(bounds.may_be_held(name) for name in names)
    assert sorted(names[1:-1]) == [
        "elsewhere/1/chip.yaml", "elsewhere/2/chip.yaml", "elsewhere/3/chip.yaml", "lock.json.yaml",
    ]  # fmt: skip
    shutil.rmtree(outside)
    code, _, err = elsewhere(path)
    assert code == 0, err


def test_the_same_files_give_the_same_bytes_whenever_and_wherever(work, hwmodel, tmp_path):
    first = work(*COMPARE).read_bytes()
    for path in tmp_path.glob("*.yaml"):
        os.utime(path, (1, 1))
        path.chmod(0o600)
    assert hwmodel("bundle", "t.csv", "-o", "new/again.zip")[0] == 0
    assert (tmp_path / "new" / "again.zip").read_bytes() == first


def test_what_it_holds_is_what_was_there(work, tmp_path):
    path = work(*COMPARE)
    with zipfile.ZipFile(path) as archive:
        lock = json.loads(archive.read("lock.json"))
        assert lock["made_with"].keys() == {"python", "hwmodel", "numpy"}
        for given in (lock["table"], *lock["inputs"]):
            content = archive.read(given["file"])
            assert content == (tmp_path / given["file"]).read_bytes()
            assert hashlib.sha256(content).hexdigest() == given["sha256"]
        assert all(info.date_time[0] == 1980 for info in archive.infolist())


def test_a_table_that_somebody_changed_before_it_was_bundled_is_found_out(
    work, hwmodel, elsewhere, tmp_path
):
    work(*COMPARE)
    edited(tmp_path / "t.csv", lambda records: records[1].update(energy="1"))
    assert hwmodel("bundle", "t.csv", "-o", "s.zip")[0] == 0
    code, out, _ = elsewhere(tmp_path / "s.zip")
    assert (code, out.splitlines()[1].startswith("moved: net ")) == (1, True)


def test_an_input_that_has_changed_is_refused_by_its_file(work, refused, tmp_path):
    work(*COMPARE)
    (tmp_path / "s.zip").unlink()
    for name, what, old, new in (
        ("chip.yaml", "hardware chip", "4.6 pJ", "9.2 pJ"),
        ("net.yaml", "network net", "channels: 4", "channels: 5"),
        ("own.yaml", "method mine", "title: ", "title: No "),
    ):
        before = (tmp_path / name).read_text()
        assert old in before
        (tmp_path / name).write_text(before.replace(old, new))
        said = refused("bundle", "t.csv", "-o", "s.zip")
        assert said.startswith(f"{name}: {what} has changed since t.csv was made (")
        (tmp_path / name).write_text(before)
    (tmp_path / "chip.yaml").unlink()
    said = refused("bundle", "t.csv", "-o", "s.zip")
    assert said.startswith("chip.yaml: cannot be read: No such file or directory; a table names ")
    assert not (tmp_path / "s.zip").exists()


def test_an_input_of_the_program_that_has_changed_is_told(work, refused, tmp_path):
    work(*COMPARE)

    def another(records):
        for record in records:
            *others, _ = record["inputs_sha256"].split("-")
            record["inputs_sha256"] = "-".join([*others, "0" * 8])

    edited(tmp_path / "t.csv", another)
    said = refused("bundle", "t.csv", "-o", "u.zip")
    assert said.startswith("accounting chip, which hwmodel brings along, has changed since t.csv ")
    edited(tmp_path / "t.csv", lambda rs: [{**r, "inputs_sha256": "00000000"} for r in rs])
    said = refused("bundle", "t.csv", "-o", "u.zip")
    assert said == "t.csv: was made from other inputs than its command names today"


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        ("s.tar", "s.tar: a bundle is a zip file; end its name in .zip"),
        ("link.zip", "link.zip: is read by the same command, and would be written over"),
        ("chip.yaml/s.zip", "chip.yaml/s.zip: cannot be written: "),
    ],
)
def test_where_a_bundle_cannot_go(work, refused, tmp_path, output, sentence):
    work(*COMPARE)
    (tmp_path / "link.zip").symlink_to("t.csv")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert refused("bundle", "t.csv", "-o", output).startswith(sentence)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_what_is_too_large_is_refused_before_a_byte_is_written(
    work, refused, monkeypatch, tmp_path
):
    from hwmodel.rerun import bundle

    work(*COMPARE)
    (tmp_path / "s.zip").unlink()
    with monkeypatch.context() as patch:
        patch.setattr(bundle, "MAX_BYTES", 600)
        assert " B are more than fits: a bundle holds at most 600 B; " in refused(
            "bundle", "t.csv", "-o", "s.zip"
        )
    monkeypatch.setattr(bundle, "MAX_FILES", 2)
    assert refused("bundle", "t.csv", "-o", "s.zip") == "t.csv: has more than 2 input files"
    assert not (tmp_path / "s.zip").exists()


def test_a_bundle_of_other_versions_is_told(work, hwmodel, tmp_path):
    path = work(*COMPARE)
    rewritten(path, lambda lock: lock["made_with"].update(numpy="1.0"))
    code, out, _ = hwmodel("verify", path)
    assert code == 0 and ", numpy 1.0; here Python " in out


# Bundles of other hands


def rewritten(path, change=lambda lock: None, more=(), without=()):
    """Write a bundle anew after a change to its lock, with more entries or fewer."""
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist() if name not in without}
    if "lock.json" in content:
        lock = json.loads(content["lock.json"])
        change(lock)
        content["lock.json"] = json.dumps(lock).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, what in (*content.items(), *more):
            archive.writestr(name, what)


def of_kind(name, kind):
    entry = zipfile.ZipInfo(name)
    entry.create_system, entry.external_attr = 3, (kind | 0o777) << 16
    return entry


def encrypted(path):
    data = bytearray(path.read_bytes())
    at = data.index(b"PK\1\2")
    data[at + 8] |= 1
    path.write_bytes(data)


def another_way(path):
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\1\2") + 10] = 97
    path.write_bytes(data)


def many(path):
    rewritten(path, more=[(f"f{i}", b"") for i in range(1003)])


def long_index(path):
    data = bytearray(path.read_bytes())
    data[-10:-6] = struct.pack("<L", 2**20 + 1)
    path.write_bytes(data)


def large_index(path):
    """Of more than 65,535 files, which has a record of its own before the last."""
    data = path.read_bytes()
    path.write_bytes(data[:-22] + b"PK\6\7" + bytes(16) + data[-22:])


NO_NAME = "which is no name of a file in a bundle"
NO_FILE = "which is no plain file, but a folder, a link or a device"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda p: p.write_bytes(b""), "is no zip file that can be read, or only part of one"),
        (lambda p: p.write_bytes(b"\0" * 5000), "is no zip file that can be read, or only part of one"),
        (lambda p: p.write_bytes(p.read_bytes()[:-1]), "is no zip file that can be read, or only part of one"),
        (lambda p: p.write_bytes(p.read_bytes()[600:]), "is no zip file that can be read, or only part of one"),
        (long_index, "lists more files than a bundle may hold"),
        (large_index, "lists more files than a bundle may hold"),
        (many, "holds more than 1,000 files"),
        (lambda p: rewritten(p, without=["lock.json"]), "holds no lock.json: it is no bundle of hwmodel"),
        (lambda p: rewritten(p, without=["chip.yaml"]), "lacks chip.yaml, which its lock.json lists"),
        (lambda p: rewritten(p, without=["t.csv"]), "lacks t.csv, which its lock.json lists"),
        (lambda p: rewritten(p, more=[("a", b"")]), "holds a, which its lock.json does not list"),
        (lambda p: rewritten(p, more=[("../a", b"")]), f"holds '../a', {NO_NAME}"),
        (lambda p: rewritten(p, more=[("b/../../a", b"")]), f"holds 'b/../../a', {NO_NAME}"),
        (lambda p: rewritten(p, more=[("/a", b"")]), f"holds '/a', {NO_NAME}"),
        (lambda p: rewritten(p, more=[("C:/a", b"")]), f"holds 'C:/a', {NO_NAME}"),
        (lambda p: rewritten(p, more=[("..\\a", b"")]), f"holds '..\\\\a', {NO_NAME}"),
        (lambda p: rewritten(p, more=[("a\nb", b"")]), f"holds 'a\\\\nb', {NO_NAME}"),
        (lambda p: rewritten(p, more=[("folder/", b"")]), f"holds 'folder/', {NO_NAME}"),
        (lambda p: rewritten(p, more=[("CHIP.yaml", b"")]), "holds 'CHIP.yaml', twice"),
        (lambda p: rewritten(p, more=[(of_kind("a", stat.S_IFLNK), b"/etc/passwd")]), f"holds 'a', {NO_FILE}"),
        (lambda p: rewritten(p, more=[(of_kind("a", stat.S_IFIFO), b"")]), f"holds 'a', {NO_FILE}"),
        (encrypted, "holds 't.csv', which is encrypted"),
        (another_way, "holds 't.csv', which is compressed in a way that is not read"),
        (lambda p: rewritten(p, lambda lock: lock["inputs"][0].update(sha256="0" * 64)),
         "chip.yaml is not as it was bundled: its SHA-256 is "),
        (lambda p: rewritten(p, lambda lock: lock["table"].update(sha256="0" * 64)),
         "t.csv is not as it was bundled: its SHA-256 is "),
        (lambda p: rewritten(p, lambda lock: lock["inputs"].append(lock["inputs"][0])),
         "lock.json lists chip.yaml twice"),
    ],
)  # fmt: skip
def test_a_bundle_that_is_damaged_foreign_or_hostile_is_refused(
    work, refused, tmp_path, change, sentence
):
    path = work(*COMPARE)
    change(path)
    before = sorted(tmp_path.parent.rglob("*"))
    assert refused("verify", "s.zip").startswith(f"s.zip: {sentence}")
    assert sorted(tmp_path.parent.rglob("*")) == before


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda lock: lock.update(version=2), "s.zip/lock.json:1: version: 2 is "),
        (lambda lock: lock.update(more=1), "s.zip/lock.json:1: more "),
        (lambda lock: lock.pop("made_with"), "s.zip/lock.json"),
        (lambda lock: lock["table"].update(file=5), "s.zip/lock.json:1: table.file "),
        (lambda lock: lock["inputs"][0].update(sha256="x"), "s.zip/lock.json:1: inputs"),
    ],
)
def test_a_lock_of_another_form_is_refused(work, refused, change, sentence):
    rewritten(work(*COMPARE), change)
    assert refused("verify", "s.zip").startswith(sentence)


def test_a_bundle_s_command_reads_nothing_but_the_bundle(work, hwmodel, tmp_path):
    """A file of this folder is not what was bundled, though it bears the name."""
    path = work(*COMPARE)
    (tmp_path / "secret.yaml").write_text("a secret: 1\n")
    for name in ("secret.yaml", str(tmp_path / "secret.yaml"), "/etc/hostname/x.yaml"):
        work(*COMPARE)

        def other(lock, name=name):
            lock["inputs"][0]["named"] = "unasked.yaml"

        rewritten(path, other)
        code, out, err = hwmodel("verify", path)
        assert (code, out) == (2, "")
        last = err.splitlines()[-1]
        assert last == "hwmodel: chip.yaml: is not in the bundle, and nothing else is read for it"


def with_zeros(path):
    """Add an input of two million zeros, which deflate a thousandfold, to a bundle and its lock."""
    zeros = bytes(2 * 10**6)
    bomb = zipfile.ZipInfo("zeros.yaml")
    bomb.compress_type = zipfile.ZIP_DEFLATED
    given = {"named": "z", "file": "zeros.yaml", "sha256": hashlib.sha256(zeros).hexdigest()}
    rewritten(path, lambda lock: lock["inputs"].append(given), more=[(bomb, zeros)])


def test_a_bomb_is_refused_before_it_is_unpacked(work, refused, hwmodel, monkeypatch):
    path = work(*COMPARE)
    with_zeros(path)
    assert hwmodel("verify", "s.zip")[0] == 0  # it is right but for its size
    monkeypatch.setattr(unbundle, "MAX_BYTES", 10**6)
    assert refused("verify", "s.zip") == "s.zip: unpacks to more than 1,000,000 B"


def test_no_more_is_unpacked_than_was_said(work, refused, monkeypatch):
    path = work(*COMPARE)
    with_zeros(path)
    data = bytearray(path.read_bytes())
    at = data.rindex(b"PK\1\2")
    assert data[at + 46 : at + 56] == b"zeros.yaml"
    data[at + 24 : at + 28] = struct.pack("<L", 5)
    path.write_bytes(data)
    seen = []
    real = zipfile.ZipExtFile.read
    monkeypatch.setattr(
        zipfile.ZipExtFile, "read", lambda *args: seen.append(real(*args)) or seen[-1]
    )
    assert refused("verify", "s.zip").startswith(
        "s.zip: is no zip file that can be read: Bad CRC-32"
    )
    assert sum(map(len, seen)) < 10**5


def test_pipes_and_folders_are_no_bundles(work, refused, tmp_path):
    os.mkfifo(tmp_path / "p.zip")
    assert refused("verify", "p.zip") == "p.zip: is no file, but a device or a pipe"
    (tmp_path / "d.zip").mkdir()
    assert refused("verify", "d.zip").startswith("d.zip: cannot be unpacked: ")
    assert (
        refused("verify", "none.zip") == "none.zip: cannot be unpacked: No such file or directory"
    )


def test_files_are_read_by_the_names_of_a_bundle(tmp_path):
    (tmp_path / "0").write_text("held")
    (tmp_path / "a.txt").write_text("of this folder")
    with inputs_kept() as read, read_from({"x/a.txt": tmp_path / "0"}):
        assert read_text(Path("x") / "a.txt", 100) == "held"
        assert is_input("./x/a.txt") and not is_input(str(tmp_path / "a.txt"))
        with pytest.raises(package.DataError, match="is not in the bundle"):
            note_input(tmp_path / "a.txt")
        with read_from(None):
            assert read_text(tmp_path / "a.txt", 100) == "of this folder"
        assert [*read] == ["x/a.txt", (tmp_path / "a.txt").as_posix()]
    assert is_input(str(tmp_path / "a.txt"))
