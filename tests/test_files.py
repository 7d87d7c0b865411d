"""Reading strictly, and writing whole files or none."""

import json
import os
from pathlib import Path

import pytest

from hwmodel import HwmodelError, NameUnknown, SpecError
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import bundled, bundled_spec, folder, load, read_yaml, whole_file
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.method import Method
from hwmodel.specs.quick_yaml import quickly_read
from tests.specs import CHIP, written


def refusal(path, kind=Hardware):
    with pytest.raises(SpecError) as caught:
        load(kind, path)
    return str(caught.value).removeprefix(str(path))


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("title: A chip", "title: A chip\ntitle: B",
         ':4: found duplicate key "title" with value "B" (original value: "A chip")'),
        ("name: SRAM,", "name: SRAM, name: X,",
         ':8: found duplicate key "name" with value "X" (original value: "SRAM")'),
        ("title: A chip", "title: &a A chip", ":3: has a YAML anchor; write the value out instead"),
        ("title: A chip", "title: *a", ":3: has a YAML alias; write the value out instead"),
        ("title: A chip", "title: !!python/object:os.system A",
         ":3: has a YAML tag; write the value out instead"),
        ("title: A chip", "title: A chip\n<<: {name: b}",
         ":4: has a YAML merge; write the fields out instead"),
        ("title: A chip", "title: a: b", ":3: mapping values are not allowed here"),
        ("title: A chip", "title: A chip\n---\nx: 1", ":4: but found another document"),
        ("title: A chip", "titel: A chip", ":3: titel is not a field; did you mean 'title'?"),
        ("title: A chip", "title: A chip\n5: x",
         ":4: 5 is not a field; known: arithmetic, array, clock, energy_unit, label, levels, macs_per_cycle, name, notes, operations_per_cycle, path_prices, "
         "reference, sources, static_energy_per_cycle, static_power, title, version, voltage, zeros"),
        ("title: A chip\n", "", ":1: title is missing"),
        ("version: 1\nname: chip\ntitle: A chip\n", "",
         ":1: version, name, title are missing; write 'version: 1'"),
        ("title: A chip", "title: ''", ":3: title '': must not be empty"),
        ("title: A chip", "title: no", None),  # YAML 1.2: text
        ("title: A chip", "title: 12:30", None),
        ("title: A chip", "title: true", ":3: title True: must be text"),
        ("title: A chip", "title: ~", ":3: title None: must be text"),
        ("name: chip", "name: a b", ":2: name 'a b': must match ^[A-Za-z0-9][A-Za-z0-9_.+-]*$"),
        ("name: chip", f"name: {'a' * 81}",
         f":2: name '{'a' * 56}...: must have at most 80 characters"),
        ("version: 1", "version: 2",
         ":1: version: 2 is no version of the file format that is known here; use 1"),
        ("version: 1", "version: 0.3",
         ":1: version: 0.3 is no version of the file format that is known here; use 1"),
        ("version: 1", "version: true",
         ":1: version: True is no version of the file format that is known here; use 1"),
        ('sources: {me: "me, 2024"}', "sources: [me]",
         ":5: sources a list of 1: must be 'field: value' lines"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_file_is_one_sentence_with_its_line(tmp_path, old, new, sentence):
    path = written(tmp_path, CHIP, (old, new))
    if sentence is None:
        load(Hardware, path)
    else:
        assert refusal(path) == sentence


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", ": holds None, not 'field: value' lines"),
        (b"# a comment\n", ": holds None, not 'field: value' lines"),
        (b"5", ": holds 5, not 'field: value' lines"),
        (b"[1, 2]", ": holds a list of 2, not 'field: value' lines"),
        (b"title: caf\xe9", ": is not UTF-8 text (byte 10)"),
        (b"\xff\xfe", ": is not UTF-8 text (byte 0)"),
        (b"a: \x00", ": is not YAML that can be read: unacceptable character #x0000: special "
                     "characters are not allowed"),
        (b"a: " + b"[" * 10**6, ":1: is nested more than 20 deep"),
        (b"x" * (2**20 + 1), ": is longer than 1,048,576 B, the most that is read"),
        (b"- " * 10**4, ":1: is nested more than 20 deep"),
        (b"a: [1", ":1: expected ',' or ']', but got '<stream end>'"),
    ],
)  # fmt: skip
def test_what_is_no_spec_at_all_is_refused(tmp_path, content, sentence):
    path = tmp_path / "file.yaml"
    path.write_bytes(content)
    assert refusal(path) == sentence


def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path):
    assert refusal(tmp_path / "none.yaml") == ": cannot be read: No such file or directory"
    assert refusal(tmp_path) == ": cannot be read: Is a directory"


def test_numbers_are_those_of_yaml_1_2(tmp_path):
    path = tmp_path / "file.yaml"
    path.write_text("[1e-3, 1.0e-3, 010, 0x10, 1_000, yes, no, 12:30]")
    assert read_yaml(path) == [0.001, 0.001, 10, 16, 1000, "yes", "no", "12:30"]


def test_bundled_files_are_read_quickly_to_the_same_values():
    kinds = ("methods", "accountings", "trainings", "hardware_specs", "specs", "graph/families")
    paths = [path for kind in kinds for path in sorted(folder(kind).glob("*.yaml"))]
    assert len(paths) > 80
    for path in paths:
        text = path.read_text(encoding="utf-8")
        assert json.dumps(quickly_read(text)) == json.dumps(read_yaml(path)), path


def test_a_bundled_file_that_was_changed_is_refused_with_its_line(tmp_path):
    path = tmp_path / "fp.yaml"
    path.write_text(bundled(Method)["fp"].read_text().replace("tensors:", "tensor:"))
    line = path.read_text().splitlines().index("tensor:") + 1
    with pytest.raises(SpecError, match=f"{path}:{line}: tensor is not a field; did you mean"):
        bundled_spec(Method, path)


@pytest.mark.parametrize(
    ("kind", "name", "sentence"),
    [
        (Hardware, "asend", "no hardware is called 'asend': did you mean 'ascend'?"),
        (
            Hardware,
            "",
            "no hardware is called '': known: a100-board, a100-sxm-board, a40-board, ascend, "
            "ascend-cube, binareye, eyeriss, eyeriss-isca, gap9, h100-board, horowitz45, "
            "horowitz45-array, mcu-m4, tpuv4i, tpuv4i-array, v100, v100-board, v100-pcie-board, "
            "v100-sm",
        ),
        (Method, "bold-nb", "no method is called 'bold-nb': did you mean 'bold-bn'?"),
        (Accounting, "x", "no accounting is called 'x': known: chip, full, paper, paper-stated"),
    ],
)
def test_an_unknown_name_comes_with_the_nearest_or_all(kind, name, sentence):
    with pytest.raises(NameUnknown) as caught:
        load(kind, name)
    assert str(caught.value) == sentence


def test_an_unknown_name_of_a_file_that_is_here_is_told_as_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text("version: 1\n")
    with pytest.raises(NameUnknown, match=r"give the file that is here, mine\.yaml"):
        load(Hardware, "mine")
    for name in ("a" * 300, "a\0b"):
        with pytest.raises(NameUnknown, match=r"did you mean|known"):
            load(Hardware, name)


def test_a_spec_a_path_and_a_name_are_accepted_alike(tmp_path):
    by_name = load(Hardware, "ascend")
    path = bundled(Hardware)["ascend"]
    assert load(Hardware, path) == load(Hardware, str(path)) == load(Hardware, by_name) == by_name


# Writing


def test_a_file_is_replaced_as_a_whole(tmp_path):
    path = tmp_path / "new" / "file.txt"
    for text in ("one\n", "two\r\n"):
        with whole_file(path) as stream:
            stream.write(text)
        assert path.read_bytes() == text.encode()
    assert [p.name for p in path.parent.iterdir()] == ["file.txt"]


def test_a_failure_in_mid_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), whole_file(path) as stream:
        stream.write("half of the n")
        stream.flush()
        raise KeyboardInterrupt
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_readers_see_the_old_file_until_the_new_one_is_whole(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("old")
    with whole_file(path) as stream:
        stream.write("new")
        stream.flush()
        assert path.read_text() == "old"
    assert path.read_text() == "new"


def test_a_new_file_is_as_readable_as_any_other(tmp_path):
    with whole_file(tmp_path / "ours") as stream:
        stream.write("x")
    (tmp_path / "theirs").write_text("x")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "theirs").stat().st_mode


def refused_to_write(path, sentence, write=lambda stream: stream.write("x")):
    with pytest.raises(HwmodelError) as caught, whole_file(path) as stream:
        write(stream)
    assert str(caught.value) == f"{path}: cannot be written: {sentence}"


def test_a_folder_in_the_place_of_the_file_is_one_sentence(tmp_path):
    (tmp_path / "file").mkdir()
    refused_to_write(tmp_path / "file", "Is a directory")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_file_in_the_place_of_the_folder_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("old")
    refused_to_write(tmp_path / "file" / "new", "File exists")
    assert (tmp_path / "file").read_text() == "old"


def test_a_folder_that_vanishes_in_mid_write_is_one_sentence(tmp_path):
    folder = tmp_path / "folder"

    def vanish(stream):
        stream.write("x")
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()

    refused_to_write(folder / "file", "No such file or directory", vanish)
    assert not folder.exists()


def test_a_read_only_folder_is_one_sentence(tmp_path, monkeypatch):
    def refuse(*args, **kwargs):
        raise PermissionError(13, os.strerror(13))

    monkeypatch.setattr("pathlib.Path.open", refuse)  # an administrator may write everywhere
    refused_to_write(tmp_path / "file", "Permission denied")
    assert not list(tmp_path.iterdir())


def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("old")

    def full(descriptor):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr("os.fsync", full)
    refused_to_write(tmp_path / "file", "No space left on device")
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("file", "old")]


def test_the_longest_name_a_file_can_have_can_be_written(tmp_path):
    path = Path(tmp_path / ("x" * 255))
    with whole_file(path) as stream:
        stream.write("x")
    assert path.read_text() == "x"
