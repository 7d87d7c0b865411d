"""Dotted paths into specs: what is found, what is put in its place, what is refused."""

import pytest

from hwmodel import SpecError, evaluate
from hwmodel.importers.load import load_network
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import bundled, load
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.method import Method
from hwmodel.vary.paths import Inputs, changed, leaves, replaced, replaced_all
from tests.specs import CHIP, written

ASCEND, V100 = load(Hardware, "ascend"), load(Hardware, "v100")
PAPER, FULL = load(Accounting, "paper"), load(Accounting, "full")
BOLD = load(Method, "bold")
SPECS = [load(kind, name) for kind in (Hardware, Accounting, Method) for name in bundled(kind)]


def values(spec):
    return {leaf.path: leaf.value for leaf in leaves(spec)}


def moved(spec, path, value):
    """What differs after a replacement."""
    before, after = values(spec), values(replaced(spec, path, value))
    assert before.keys() == after.keys()
    return {path: after[path] for path in before if before[path] != after[path]}


def test_leaves_of_a_chip_are_the_constants_of_its_file():
    """Ascend: 0.02 GB/s/mW is 1/0.02/8 pJ/bit, 8192 KiB are 2^26 bit, 1.7 TOPS/W at 2 a MAC."""
    found = values(ASCEND)
    assert found["levels.L3.capacity"] is None
    assert found["levels.L3.access_energy"] == found["levels.L3.read_energy"] == 6.25
    assert found["levels.L2.capacity"] == 2**26
    assert found["levels.L0-C.capacity"] == 2**21
    assert found["arithmetic.mac.32"] == pytest.approx(2 / 1.7, rel=1e-15)
    assert found["arithmetic.mac.32.operations"] == 2
    memories = ("L3", "L2", "L1", "L0-A", "L0-B", "L0-C")
    fields = ("capacity", "access_energy", "read_energy", "write_energy")
    assert set(found) == {f"levels.{m}.{f}" for m in memories for f in fields} | {
        "energy_unit", "arithmetic.mac.32", "arithmetic.mac.32.operations", "zeros", "path_prices",
    }  # fmt: skip


def test_leaves_of_an_accounting_are_all_its_fields_but_names_and_texts():
    groups = {"counting", "widths", "prices", "extras"}
    words = {"version", "name", "title", "sources", "based_on", "baseline", "published_run"}
    words |= {"not_counted", "not_counted_in_training"}
    assert set(Accounting.model_fields) == groups | words
    fields = {f"{g}.{f}" for g in groups for f in type(getattr(FULL, g)).model_fields}
    relative = "prices.relative_prices"
    listed = {f"{relative}.{p.operation}.{p.bits}" for p in FULL.prices.relative_prices}
    assert set(values(FULL)) == fields - {relative} | listed | {"published_run"}
    by_path = {leaf.path: leaf for leaf in leaves(FULL)}
    assert by_path["counting.search"].choices == ("level-by-level", "optimal")
    assert by_path["extras.teacher"].choices == (False, True)
    assert (
        by_path["widths.boolean_sum_bits"].choices,
        by_path["widths.boolean_sum_bits"].number,
    ) == (
        ("fan-in",),
        True,
    )
    assert (
        by_path["prices.logic_price_macs"].choices,
        by_path["prices.logic_price_macs"].unit,
    ) == (
        (None,),
        "MAC",
    )
    assert by_path["widths.border_bits"].whole
    assert not by_path["extras.flip_rate"].whole


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: f"{spec.KIND}-{spec.name}")
def test_every_leaf_put_back_where_it_was_leaves_the_spec_as_it_was(spec):
    """In energies, widths and choices: `efficiency` may have become `access_energy`."""
    before = values(spec)
    for leaf in leaves(spec):
        if leaf.value is not None:
            after = values(replaced(spec, leaf.path, leaf.value))
            assert {p: after[p] for p in before if p in after} == {
                p: before[p] for p in before if p in after
            }
            assert before.keys() - after.keys() <= {leaf.path.rpartition(".")[0] + ".access_energy"}


@pytest.mark.parametrize(
    ("spec", "path", "value", "difference"),
    [
        (ASCEND, "levels.L1.capacity", "128 KiB", {"levels.L1.capacity": 2**20}),
        (ASCEND, "levels.L1.capacity", 4096, {"levels.L1.capacity": 4096}),
        (ASCEND, "levels.L0-A.capacity", "1 KiB", {"levels.L0-A.capacity": 8192}),
        (ASCEND, "levels.2.capacity", "1 KiB", None),
        (ASCEND, "arithmetic.mac.32", "3 pJ", {"arithmetic.mac.32": 3.0}),
        (ASCEND, "arithmetic.mac.32.energy", 3.0, {"arithmetic.mac.32": 3.0}),
        (
            ASCEND,  # of one operation; twice as many of them cost twice as much
            "arithmetic.mac.32.operations",
            4,
            {"arithmetic.mac.32": 4 / 1.7, "arithmetic.mac.32.operations": 4},
        ),
        (V100, "levels.L2.access_energy", "3.2 MAC/32bit", "levels.L2"),
        (V100, "levels.L2.efficiency", "1 GB/s/mW", None),  # pJ on a chip in MAC
        (PAPER, "extras.flip_rate", 0.5, {"extras.flip_rate": 0.5}),
        (PAPER, "prices.relative_prices.mac.16", 0.25, {"prices.relative_prices.mac.16": 0.25}),
        (PAPER, "widths.boolean_sum_bits", "fan-in", {"widths.boolean_sum_bits": "fan-in"}),
        (BOLD, "layers.3.weights", 2, {"layers.3.weights": 2}),
        (BOLD, "layers.3.arithmetic.forward", "mac", {"layers.3.arithmetic.forward": "mac"}),
        (BOLD, "tensors.4.signal", 8, {"tensors.4.signal": 8}),
    ],
)
def test_one_value_moves_and_nothing_else(spec, path, value, difference):
    if difference is None:
        with pytest.raises(SpecError):
            replaced(spec, path, value)
    elif isinstance(difference, str):
        fields = ("access_energy", "read_energy", "write_energy")
        assert moved(spec, path, value) == {f"{difference}.{field}": 0.1 for field in fields}
    else:
        found = moved(spec, path, value)
        assert found.keys() == difference.keys()
        for name, wanted in difference.items():
            is_word = isinstance(wanted, str)
            assert found[name] == (wanted if is_word else pytest.approx(wanted, rel=1e-15))


def test_reading_dearer_than_writing():
    dear = replaced(ASCEND, "levels.L2.read_energy", "8 pJ/B").levels[1]
    assert (dear.read_energy_per_bit, dear.write_energy_per_bit) == (1.0, 0.625)
    both = replaced_all(
        ASCEND, {"levels.L2.read_energy": 2.0, "levels.L2.write_energy": 3.0}
    ).levels[1]
    assert (both.read_energy_per_bit, both.write_energy_per_bit) == (2.0, 3.0)
    back = replaced(replaced(ASCEND, "levels.L2.read_energy", 2.0), "levels.L2.access_energy", 5.0)
    assert back.levels[1].energies == ((5.0, None), (5.0, None))


def test_several_values_are_checked_together_and_not_one_by_one():
    together = {"counting.search": "optimal", "counting.counting": "exact"}
    assert replaced_all(PAPER, together).counting.search == "optimal"
    with pytest.raises(
        SpecError, match=r"accounting paper: counting\.search: optimal needs counting exact"
    ):
        replaced(PAPER, "counting.search", "optimal")


@pytest.mark.parametrize(
    ("spec", "path", "value", "said"),
    [
        (ASCEND, "levels.L4.capacity", 1, "hardware ascend: 'levels.L4.capacity' is no path to a value: known: L0, L0-A"),
        (ASCEND, "levels.L2.capcity", 1, "did you mean 'capacity'?"),
        (ASCEND, "levels.L2.capacity.x", 1, "is no path to a value"),
        (ASCEND, "levels.L2", 1, "'levels.L2' is no single value: it has name, level,"),
        (ASCEND, "arithmetic.mac.16", 1, "did you mean 'mac.32'?"),
        (ASCEND, "", 1, "is no single value"),
        (ASCEND, "levels.L2.capacity", 0, "hardware ascend, levels.L2: capacity: '0 bit': a capacity must be above 0"),
        (ASCEND, "levels.L2.capacity", 0.5, "not a whole number of bits"),
        (ASCEND, "levels.L2.capacity", True, "True has no unit"),
        (ASCEND, "levels.L2.read_energy", -1.0, "hardware ascend, levels.L2: read_energy: -1.0: an energy must be finite and at least 0"),
        (ASCEND, "levels.L2.read_energy", float("nan"), "must be finite"),
        (ASCEND, "levels.L2.read_energy", "3 MAC/bit", "hardware ascend: levels.L2: is in MAC, but energy_unit is pJ"),
        (PAPER, "extras.flip_rate", 2, "accounting paper, extras: flip_rate 2: must be at most 1"),
        (PAPER, "extras.flp_rate", 2, "did you mean 'flip_rate'?"),
        (PAPER, "flip_rate", 1, "accounting paper: 'flip_rate' is no path to a value: did you mean 'extras.flip_rate'?"),
        (PAPER, "flp_rate", 2, "did you mean 'extras.flip_rate'?"),
        (PAPER, "relative_prices.mac.16", 2, "did you mean 'prices.relative_prices.mac.16'?"),
        (PAPER, "counting", "exact", "'counting' is no single value: it has search, tile_sizes,"),
        (PAPER, "xyz", 2, "is no path to a value: known: based_on, baseline, counting,"),
        (PAPER, "widths.border_bits", 1.5, "border_bits 1.5: must be a whole number"),
        (PAPER, "counting.search", "best", "search 'best': must be 'level-by-level' or 'optimal'"),
        (BOLD, "layers.9.weights", 1, "known: 1, 2, 3"),
        (BOLD, "layers.3.arithmetic.forwrd", "mac", "arithmetic.forwrd is not a field; did you mean 'forward'?"),
        (ASCEND, "levels.L0.split.L0-A.capacity", "1 KiB", "its memories have names of their own, as levels.L0-A"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_with_the_rule(spec, path, value, said):
    with pytest.raises(SpecError) as caught:
        replaced(spec, path, value)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "one", "other"),
    [
        (ASCEND, "levels.L3.access_energy", "levels.L3.read_energy"),
        (ASCEND, "levels.L3.access_energy", "levels.L3.efficiency"),
        (ASCEND, "levels.L3.efficiency", "levels.L3.write_energy"),
        (ASCEND, "levels.L3.bandwidth", "levels.L3.read_bandwidth"),
        (ASCEND, "arithmetic.mac.32", "arithmetic.mac.32.energy"),
        (ASCEND, "arithmetic.mac.32", "arithmetic.mac.32.efficiency"),
    ],
)
def test_two_paths_to_one_figure_are_refused_in_either_order(spec, one, other):
    for first, second in ((one, other), (other, one)):
        with pytest.raises(SpecError) as caught:
            replaced_all(spec, {first: 1.0, second: 2.0})
        assert str(caught.value) == (
            f"hardware ascend: {first} and {second} set one figure; give one"
        )


def test_a_name_with_a_dot_in_it_is_one_step(tmp_path):
    path = written(tmp_path, CHIP, ("name: RF", "name: R.F"), ("name: SRAM", "name: R"))
    chip = replaced(load(Hardware, path), "levels.R.F.capacity", "2 KiB")
    assert [level.capacity_bits for level in chip.levels] == [None, 2**19, 2**14]


# Paths into all inputs of an evaluation at once

INPUTS = Inputs(load_network("vgg-small"), ASCEND, BOLD, PAPER)


def test_a_point_of_a_sweep_is_what_the_changed_inputs_evaluate_to():
    point = changed(
        INPUTS,
        {
            "network.fc": 1,
            "network.image": 64,
            "hardware.levels.L1.capacity": "512 KiB",
            "method.layers.3.weights": 2,
            "accounting.widths.preactivation_bits": 16,
            "batch": 4,
        },
    )
    assert point.network.input == (3, 64, 64)
    assert [layer.name for layer in point.network.layers if layer.kind == "linear"] == ["fc1"]
    assert point.hardware.levels[2].capacity_bits == 2**22
    assert point.method.layers[2].weights == 2
    assert (point.accounting.widths.preactivation_bits, point.batch) == (16, 4)
    report = evaluate(
        point.network, point.hardware, point.method, accounting=point.accounting, batch=point.batch
    )
    assert report.energy > 0
    assert INPUTS.hardware.levels[2].capacity_bits == 2**23  # what was given is as it was


def test_layers_of_a_network_have_paths_too():
    point = changed(INPUTS, {"network.layers.conv2.channels": 64})
    assert {n.layer.name: n.output_shape for n in point.network.nodes()}["conv2"] == (64, 32, 32)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("network.fc", "x", "network vgg-small: fc 'x'"),
        ("network.fc", 0, "network vgg-small: fc 0: must be at least 1"),
        ("network.imag", 64, "did you mean 'image'?"),
        ("network.layers.conv9.channels", 64, "did you mean 'conv"),
        ("batch.size", 2, "batch has no fields"),
        ("hardwre.levels", 2, "did you mean 'hardware'?"),
        ("hardware", 2, "hardware has fields"),
    ],
)
def test_wrong_roots_and_arguments_are_named(path, value, said):
    with pytest.raises(SpecError) as caught:
        changed(INPUTS, {path: value})
    assert said in str(caught.value)
