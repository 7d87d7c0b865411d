"""E: bad input and units. One line says file, line, field, value and rule; nothing is written."""

import json

import pytest

from hwmodel.specs.files import bundled
from hwmodel.specs.hardware import Hardware
from tests.conftest import total
from tests.specs import CHIP, NETWORK, written


def chip(tmp_path, *changes):
    return written(tmp_path, CHIP, *changes, name="chip.yaml")


def net(tmp_path, *changes):
    return written(tmp_path, NETWORK, *changes, name="net.yaml")


def test_E1_exponents_without_a_point_are_numbers(hwmodel, reported, tmp_path):
    for number in ("1e-3", "1.0e-3", "0.001"):
        chip(tmp_path, ("access_energy: 5 pJ/B", f"access_energy: {number}"))
        assert hwmodel("hardware", "check", "chip.yaml")[0] == 0
        net(tmp_path)
        asked = {"layer": "conv1", "pass_": "forward", "tensor": "F", "memory": "SRAM"}
        rows = reported("net.yaml", hardware="chip.yaml")
        bits, energy = (total(rows, column, **asked) for column in ("count", "energy"))
        assert energy == pytest.approx(bits * 1e-3, rel=1e-12)


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("~", "levels.SRAM: give one of access_energy, efficiency, energy, or read_energy with write_energy; here: none of them"),
        (".nan", "levels.SRAM.access_energy: nan: an energy must be finite and at least 0"),
        (".inf", "levels.SRAM.access_energy: inf: an energy must be finite and at least 0"),
        ("false", "levels.SRAM.access_energy: False is no energy; write one as in '50 pJ/B' or '0.9 pJ'"),
        ("no", "levels.SRAM.access_energy: 'no': write a number and a unit, as in '50 pJ/B'"),
        ("NaN", "levels.SRAM.access_energy: 'NaN': write a number and a unit, as in '50 pJ/B'"),
    ],
)  # fmt: skip
def test_E2_what_is_no_number_is_refused_with_its_value(refused, tmp_path, value, sentence):
    chip(tmp_path, ("5 pJ/B", value))
    assert refused("hardware", "check", "chip.yaml") == f"chip.yaml:8: {sentence}"


def test_E2_010_is_ten_and_12_30_is_no_number(hwmodel, refused, tmp_path):
    chip(tmp_path, ("bits: 32", "bits: 010, operations: 010"))
    assert hwmodel("hardware", "check", "chip.yaml")[0] == 0
    net(tmp_path, ("channels: 8", "channels: 12:30"))
    assert refused("network", "check", "net.yaml") == (
        "net.yaml:6: layers.conv1.channels '12:30': must be a whole number"
    )


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("energy: 4.6 pJ", "enrgy: 5", "chip.yaml:11: arithmetic.1.enrgy is not a field; did you mean 'energy'?"),
        ("name: SRAM,", "name: SRAM, capcity: 3 B,",
         "chip.yaml:8: levels.SRAM.capcity is not a field; did you mean 'capacity'?"),
    ],
)  # fmt: skip
def test_E4_an_unknown_key_is_refused_with_the_nearest(refused, tmp_path, old, new, sentence):
    chip(tmp_path, (old, new))
    assert refused("hardware", "check", "chip.yaml") == sentence


def test_E5_a_level_without_a_size_is_named(refused, tmp_path):
    chip(tmp_path, ("capacity: 64 KiB, ", ""))
    assert (
        refused("hardware", "check", "chip.yaml") == "chip.yaml:8: levels.SRAM.capacity is missing"
    )


@pytest.mark.parametrize("name", bundled(Hardware))
def test_E5_what_is_bundled_is_complete(hwmodel, name):
    assert hwmodel("hardware", "check", name)[0] == 0


@pytest.mark.parametrize(
    ("size", "sentence"),
    [
        (
            "64KB",
            "'64KB': 'KB' means 1000 to some and 1024 to others; write KiB for powers of 1024, or plain B",
        ),
        ("45nm", "'45nm': 'nm' is no size; use one of bit, B, KiB, MiB, GiB"),
        ("1V", "'1V': 'V' is no size; use one of bit, B, KiB, MiB, GiB"),
        ("8*1024 B", "'8*1024 B': '*1024 B' is no size; use one of bit, B, KiB, MiB, GiB"),
    ],
)
def test_E6_units_are_read_or_named_and_nothing_is_computed(refused, tmp_path, size, sentence):
    chip(tmp_path, ("64 KiB", size))
    assert (
        refused("hardware", "check", "chip.yaml")
        == f"chip.yaml:8: levels.SRAM.capacity: {sentence}"
    )


def test_E6_an_unknown_kind_of_layer_comes_with_the_nearest(refused, tmp_path):
    net(tmp_path, ("kind: conv", "kind: covn"))
    assert refused("network", "check", "net.yaml") == (
        "net.yaml:6: layers.conv1.kind: 'covn' is no kind of layer; did you mean 'conv'?"
    )


def test_E7_a_chip_that_computes_nothing_is_one_line(refused, tmp_path):
    chip(tmp_path, ("operation: mac", "operation: add"))
    assert (
        refused("hardware", "check", "chip.yaml")
        == "chip.yaml:10: arithmetic: has no price for a 'mac'"
    )


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("5 pJ/B", "-1 pJ/B", "chip.yaml:8: levels.SRAM.access_energy: '-1 pJ/B': an energy must be finite and at least 0"),
        ("64 KiB", "0 B", "chip.yaml:8: levels.SRAM.capacity: '0 B': a capacity must be above 0, or 'unlimited'"),
        ("bits: 32", "bits: 0", "chip.yaml:11: arithmetic.1.bits 0: must be at least 1"),
    ],
)  # fmt: skip
def test_E8_negative_and_zero_are_refused_with_the_rule(refused, tmp_path, old, new, sentence):
    chip(tmp_path, (old, new))
    assert refused("hardware", "check", "chip.yaml") == sentence


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("stride: 2", "stride: 0", "net.yaml:9: layers.conv2.stride: 0 is not between 1 and 2147483648"),
        ("channels: 8", "channels: 0", "net.yaml:6: layers.conv1.channels 0: must be at least 1"),
        ("channels: 4", "channels: 9, groups: 3",
         "net.yaml:9: layer conv2: groups 3 does not divide the 8 input channels (input (8, 4, 4), channels 9)"),
    ],
)  # fmt: skip
def test_E8_shapes_that_cannot_be_are_refused_with_the_rule(refused, tmp_path, old, new, sentence):
    net(tmp_path, (old, new))
    assert refused("network", "check", "net.yaml") == sentence


def test_E11_every_energy_has_its_unit(hwmodel, reported, tmp_path):
    """Two chips, two units; what is read as nJ is told in pJ, and J is no unit of a file."""
    for name, unit in (("ascend", "pJ"), ("v100", "MAC (fp32)")):
        lines = hwmodel(
            "compare",
            "vgg-small-1fc",
            "--hardware",
            name,
            "--methods",
            "fp",
            "--csv",
            "-",
            "--accounting",
            "paper",
        )[1].splitlines()
        column = lines[0].split(",").index("unit")
        assert {line.split(",")[column] for line in lines[1:]} == {unit}
    net(tmp_path)
    said = []
    for stated in ("4.6 pJ", "0.0046 nJ", "4600 fJ"):
        chip(tmp_path, ("4.6 pJ", stated))
        rows = reported("net.yaml", "--mode", "inference", hardware="chip.yaml")
        said.append(total(rows, "energy", layer="conv1", operation="mac"))
    assert said == pytest.approx([4.6 * 8 * 8 * 8 * 27] * 3)  # C 3, M 8, 8 x 8, 3 x 3


@pytest.mark.parametrize(
    ("version", "sentence"),
    [
        (
            "version: 0.3\n",
            "chip.yaml:1: version: 0.3 is no version of the file format that is known here; use 1",
        ),
        ("", "chip.yaml:1: version is missing; write 'version: 1'"),
    ],
)
@pytest.mark.parametrize("other", [(), (("name: SRAM", "nmae: SRAM"),)])
def test_E14_another_version_is_told_before_what_follows_from_it(
    refused, tmp_path, version, sentence, other
):
    chip(tmp_path, ("version: 1\n", version), *other)
    said = refused("hardware", "check", "chip.yaml")
    assert said.startswith(sentence)


def test_E14_a_file_of_another_kind_is_told_by_its_fields(refused, tmp_path):
    net(tmp_path)
    assert refused("hardware", "check", "net.yaml") == (
        "net.yaml: is a file of kind network, by its fields; one of kind hardware is expected here"
    )


def test_E15_one_layer_of_twenty_that_cannot_be_tiled_is_named(refused, hwmodel, tmp_path):
    """A sum that misses a layer would be false, so a report refuses, and nothing is written."""
    layers = [
        {"name": f"c{i}", "kind": "conv", "channels": 8, "kernel": 3, "padding": 1}
        for i in range(20)
    ]
    layers[13]["bits"] = 64
    document = {"version": 1, "name": "n", "title": "t", "input": [8, 9, 9], "layers": layers}
    (tmp_path / "net.yaml").write_text(json.dumps(document))
    wide = (
        "arithmetic:\n",
        "arithmetic:\n  - {operation: mac, bits: 64, energy: 18 pJ, source: me}\n",
    )
    written(tmp_path, CHIP, wide, name="large.yaml")
    chip(tmp_path, wide, ("1 KiB", "68 bit"))
    asked = (
        "report",
        "net.yaml",
        "--method",
        "as-stated",
        "--accounting",
        "full",
        "--csv",
        "x.csv",
        "--hardware",
    )
    assert refused(*asked, "chip.yaml") == (
        "c14, forward on chip: no tile fits: one element of I and F needs 96 bit, RF holds 68 (4 B too few)"
    )
    assert not (tmp_path / "x.csv").exists()
    assert hwmodel(*asked, "large.yaml")[0] == 0
