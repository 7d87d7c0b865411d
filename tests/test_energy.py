"""Energies by hand, and the laws every energy obeys."""

from math import fsum

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwmodel import HwmodelError, SpecError, compare, evaluate
from hwmodel.graph.layers import Conv
from hwmodel.model.entries import moved
from hwmodel.model.ledger import Ledger
from hwmodel.model.prices import Prices
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import load
from hwmodel.tiling.accesses import Mapping
from hwmodel.tiling.level_by_level import level_by_level
from hwmodel.tiling.options import memories
from hwmodel.work.problem import Extents, Problem, Widths, Window
from hwmodel.work.tensor import Direction, Factor, Pass, Tensor
from hwmodel.work.work import Move
from tests.rows import merge, merged, product_rows
from tests.specs import ACCOUNTING, NETWORK, chip, written
from tests.strategies import convolutions, problem

PAPER = load(Accounting, "paper")


def rows(nest, mapping, hardware, macs=0):
    return product_rows(nest, mapping, hardware, PAPER, macs)


def compute(report, layer, phase):
    found = [
        r for r in merged(report) if (r.layer, r.phase, r.component) == (layer, phase, "compute")
    ]
    (row,) = found
    return row


# Compute: operations times price


def test_compute_energy_of_two_layers_by_hand():
    """conv1: 128 x 3 x 3 x 3 x 32 x 32 MACs; fc3: 10 x 1024. Ascend: 1.7 operations a pJ, 2 a MAC."""
    report = evaluate("vgg-small", "ascend", "fp", accounting="paper")
    for layer, macs in (("conv1", 3_538_944), ("fc3", 10_240)):
        row = compute(report, layer, "forward")
        assert row.operations == macs
        assert row.energy == pytest.approx(macs * 2 / 1.7, rel=1e-12)
    normalised = evaluate("vgg-small", "v100", "fp", accounting="paper")
    assert compute(normalised, "conv1", "forward").energy == 3_538_944


@pytest.mark.parametrize(
    ("method", "phase", "ascend", "v100"),
    [  # conv2: 128 x 128 x 3 x 3 x 32 x 32 = 150,994,944 MACs
        ("binaryconnect", "forward", 1 / 1.7, 1.0),  # an addition: one of the MAC's operations
        ("binaryconnect", "backward_weight", 2 / 1.7, 1.0),
        ("binarynet", "forward", 0.001 * 2 / 1.7, 0.001),
        ("binarynet", "backward_input", 1 / 1.7, 1.0),
        ("bold", "backward_input", 0.001 * 2 / 1.7, 0.001),  # 2 x 1 - 1 Boolean operations
    ],
)
def test_each_arithmetic_has_its_price(method, phase, ascend, v100):
    for hardware, price in (("ascend", ascend), ("v100", v100)):
        row = compute(evaluate("vgg-small", hardware, method, accounting="paper"), "conv2", phase)
        assert row.energy == pytest.approx(150_994_944 * price, rel=1e-12)


def test_accumulating_a_signal_of_b_bits_takes_2b_minus_1_boolean_operations(tmp_path):
    """16 bit: 31 operations, the width the backward signal has and not that of the other operand."""
    wide = written(tmp_path, ACCOUNTING, ("boolean_signal_bits: 1", "boolean_signal_bits: 16"))
    for phase in ("backward_input", "backward_weight"):
        row = compute(evaluate("vgg-small", "v100", "bold", accounting=wide), "conv2", phase)
        assert row.operations == 31 * 150_994_944
        assert row.energy == pytest.approx(31 * 150_994_944 * 0.001, rel=1e-12)


def test_a_chip_without_the_mac_that_is_asked_for_is_an_error(tmp_path):
    wide = written(tmp_path, ACCOUNTING, ("full_precision_bits: 32", "full_precision_bits: 16"))
    with pytest.raises(SpecError) as caught:
        evaluate("vgg-small", "ascend", "fp", accounting=wide)
    assert str(caught.value) == (
        "hardware ascend: states no price of a 16-bit mac, which accounting mine asks for; a line "
        "under arithmetic in the chip's file states one: {operation: mac, bits: 16, energy: ... pJ, "
        "source: ...}; conv1, forward, asks for it under method fp"
    )


# Memory: accesses times price


def test_memory_energy_of_one_layer_by_hand():
    """2 -> 4 channels, 3 x 3 on 4 x 4, padded by 1; I of 2 bit, F of 3, O of 5.

    L1 holds 2 filters over 4 x 2 outputs; L0 one filter over 2 x 2.
    """
    layer = Conv(name="x", kind="conv", channels=4, kernel=3, padding=1)
    nest = problem(layer, (2, 4, 4), 1, "forward", (2, 3, 5))
    tiles = (Extents(1, 2, 2, 4, 2, 3, 3), Extents(1, 1, 2, 2, 2, 3, 3))
    hardware = chip((None, 10.0, 20.0), (10**6, 1.0, 7.0), (10**6, 0.1, 7.0))
    found = {(r.tensor, r.level): r for r in rows(nest, Mapping(tiles, ("F", "F")), hardware)}
    by_hand = {
        # 2 filter blocks x 2 ifmap blocks of 6 x 4 positions x 2 channels
        ("I", "L0"): (192, 192 * 2 * 10.0),
        # 4 filter blocks x (2 x 2 blocks of 4 x 4 positions) x 2 channels
        ("I", "L1"): (512, 512 * 2 * 1.0),
        # 4 filters x 2 channels x 9 taps x 16 outputs
        ("I", "L2"): (1152, 1152 * 2 * 0.1),
        ("F", "L0"): (72, 72 * 3 * 10.0),
        ("F", "L1"): (144, 144 * 3 * 1.0),  # for each of 2 ifmap blocks
        ("F", "L2"): (288, 288 * 3 * 0.1),  # for each of 4
        ("O", "L0"): (64, 64 * 5 * 20.0),  # leave once, to DRAM
    }
    assert {key: row.accesses for key, row in found.items()} == {
        k: n for k, (n, _) in by_hand.items()
    }
    for key, (_, energy) in by_hand.items():
        assert found[key].energy == pytest.approx(energy, rel=1e-12), key
    assert found["I", "L0"].bits == 192 * 2


def test_partial_sums_are_paid_at_their_own_width_there_and_back():
    """12 channels in 3 parts: 2 unfinished sums of 32 bit out and back, then 1 bit out."""
    nest = Problem(Extents(1, 1, 12, 1, 1, 1, 1), Window(1), Window(1), Widths(1, 1, 1))
    hardware = chip((None, 3.0, 5.0), (10**6, 1.0, 1.0))
    mapping = Mapping((Extents(1, 1, 4, 1, 1, 1, 1),), ("F",))
    (row,) = [r for r in rows(nest, mapping, hardware) if r.tensor == "O"]
    assert row.accesses == 2 + 2 + 1
    assert row.bits == 2 * 32 + 2 * 32 + 1
    assert row.energy == 2 * 32 * 3.0 + 2 * 32 * 5.0 + 1 * 5.0


def test_a_split_level_charges_each_operand_its_own_memory():
    layer = Conv(name="x", kind="conv", channels=4, kernel=3, padding=1)
    nest = problem(layer, (2, 4, 4), 1, "forward", (1, 1, 1))
    memories = [(10**6, 2.0, 0.0), (10**6, 3.0, 0.0), (10**6, 99.0, 99.0)]
    hardware = chip((None, 1.0, 1.0), split=memories)
    found = {r.level: r.energy for r in rows(nest, Mapping((nest.extent,), ("F",)), hardware)}
    assert found["SI"] == 2 * 9 * 16 * 2.0  # each tap once for all 4 filters
    assert found["SF"] == 72 * 3.0
    assert "SO" not in found


def test_reads_and_writes_each_have_their_energy():
    """100 reads at 1.0 and 50 writes at 1.2 are 160, not 150 at the dearer 1.2."""
    hardware = chip((None, 1.0, 1.2), (64, 9.0, 9.0))
    read, written = (
        Move(Pass.FORWARD, direction, Tensor("I", (Factor("words", words),), 1), through=False)
        for direction, words in ((Direction.READ, 100), (Direction.WRITE, 50))
    )
    entries = [
        *moved("layer", read, memories(hardware)),
        *moved("layer", written, memories(hardware)),
    ]
    (row,) = merge(Ledger(tuple(entries)), Prices(hardware, PAPER))
    assert row.energy == pytest.approx(160, rel=1e-12)
    assert (row.accesses, row.bits, row.level) == (150, 150, "L0")


def test_extra_work_is_one_word_in_dram_for_each_pre_activation():
    plain, extra = (
        evaluate("vgg-small", "v100", method, accounting="paper") for method in ("bold", "bold-bn")
    )
    outputs = 2 * 128 * 32**2 + 2 * 256 * 16**2 + 2 * 512 * 8**2 + 1024 + 1024 + 10
    assert extra.energy - plain.energy == pytest.approx(outputs * 200, rel=1e-9)
    twice = evaluate("vgg-small", "v100", "bold-bn", batch=2, accounting="paper")
    assert twice.by("component")["elementwise"] == pytest.approx(2 * outputs * 200, rel=1e-12)


# Laws


@pytest.mark.parametrize(
    "method", ["fp", "binaryconnect", "xnor-net", "binarynet", "bold", "bold-bn"]
)
@pytest.mark.parametrize("hardware", ["ascend", "v100"])
def test_the_table_and_every_view_of_it_sum_to_the_energy(method, hardware):
    report = evaluate("vgg-small", hardware, method, accounting="paper")
    assert fsum(report.table.energy) == pytest.approx(report.energy, rel=1e-9)
    for columns in (("layer",), ("pass", "tensor"), ("memory", "component")):
        assert report.by(*columns).sum() == pytest.approx(report.energy, rel=1e-9)
    assert set(report.table.unit) == {report.unit}
    (line,) = compare("vgg-small", [hardware], [method], accounting="paper")
    passes = ("forward", "backward_input", "backward_weight", "update")
    split = [f"{p}_{part}" for p in passes[:3] for part in ("product", "elementwise")]
    for parts in (passes, (*split, "update"), ("compute", "memory", "static")):
        assert fsum(getattr(line, part) for part in parts) == pytest.approx(line.energy, rel=1e-9)
    assert line.energy == report.energy


def test_by_takes_columns_of_the_table_only():
    report = evaluate("vgg-small-1fc", "v100", "fp", mode="inference", accounting="paper")
    for columns in (("layr",), ()):
        with pytest.raises(HwmodelError, match=r"give columns of the table, layer, pass, "):
            report.by(*columns)


def made(prices, mac, factor=1.0, scaled=None):
    """A chip of three levels; the constant number `scaled` (or each, for None) times `factor`."""
    constants = [*prices, mac]
    constants = [c * factor if scaled in (None, i) else c for i, c in enumerate(constants)]
    dram, sram, rf = zip([None, 4000, 900], constants[0:6:2], constants[1:6:2], strict=True)
    return chip(dram, sram, rf, mac=constants[6])


prices = st.lists(st.floats(0.1, 100), min_size=6, max_size=6)
factors = st.floats(0, 1000)


@settings(max_examples=60, deadline=None)
@given(convolutions(), prices, st.floats(0.1, 100), factors, st.integers(0, 6))
def test_energy_is_linear_in_every_constant_of_the_chip(convolution, prices, mac, factor, scaled):
    """At fixed tiles: energy(c x) = energy(0) + c (energy(x) - energy(0)), constant by constant."""
    layer, shape, batch = convolution
    nest = problem(layer, shape, batch, "forward")
    mapping = level_by_level(nest, memories(made(prices, mac)))

    def energy(c):
        found = rows(nest, mapping, made(prices, mac, c, scaled), macs=1000)
        return fsum(row.energy for row in found)

    linear = energy(0) + factor * (energy(1) - energy(0))
    assert energy(factor) == pytest.approx(linear, rel=1e-9)
    read_and_idle = (3, 5)  # nothing is written to the inner levels under this count
    assert (energy(1) > energy(0)) or scaled in read_and_idle


@settings(max_examples=15, deadline=None)
@given(prices, st.floats(0.1, 100), st.integers(-9, 9))
def test_energy_scales_with_all_constants_together(tmp_path_factory, prices, mac, power):
    """Nothing else moves, the tiles neither: powers of two leave every comparison as it was."""
    network = written(tmp_path_factory.mktemp("net"), NETWORK)
    whole = evaluate(network, made(prices, mac), "binarynet", accounting="paper")
    scaled = evaluate(network, made(prices, mac, 2.0**power), "binarynet", accounting="paper")
    assert scaled.energy == pytest.approx(2.0**power * whole.energy, rel=1e-9)


def test_ten_times_the_dram_energy_is_ten_times_the_dram_part_and_nothing_else():
    layer = Conv(name="x", kind="conv", channels=8, kernel=3, padding=1)
    nest = problem(layer, (6, 12, 12), 2, "forward")
    one, ten = (chip((None, e, e), (20_000, 1, 1), (4000, 0.5, 0.5)) for e in (7.0, 70.0))
    mapping = level_by_level(nest, memories(one))
    for before, after in zip(*(rows(nest, mapping, c, macs=9) for c in (one, ten)), strict=True):
        assert after.energy == (10 if before.level == "L0" else 1) * before.energy
        assert after[:-1] == before[:-1]


# What is evaluated


def test_training_is_three_passes_and_inference_the_first_of_them():
    trained = evaluate("vgg-small-1fc", "v100", "fp", accounting="paper")
    inferred = evaluate("vgg-small-1fc", "v100", "fp", mode="inference", accounting="paper")
    assert merged(inferred) == [row for row in merged(trained) if row.phase == "forward"]
    passes = trained.table.groupby("pass", sort=False).layer.unique().map(list)
    layers = ["conv1", "conv2", "conv3", "conv4", "conv5", "conv6", "fc1"]
    assert passes.to_dict() == {
        "forward": layers,
        "backward_weight": layers,
        "backward_input": layers[1:],  # nobody needs the gradient of the image
    }


def test_the_first_layer_s_input_gradient_is_a_choice(tmp_path):
    choice = ("first_layer_input_gradient: false", "first_layer_input_gradient: true")
    report = evaluate("vgg-small", "v100", "fp", accounting=written(tmp_path, ACCOUNTING, choice))
    assert compute(report, "conv1", "backward_input").operations == 3_538_944


def test_operations_scale_with_the_batch():
    one, seven = (
        evaluate("vgg-small-1fc", "v100", "fp", batch=batch, accounting="paper") for batch in (1, 7)
    )
    operations = [sum(row.operations for row in merged(report)) for report in (one, seven)]
    assert operations[1] == 7 * operations[0]


@pytest.mark.parametrize("batch", [0, -1, True, 1.0, "1", 2**31 + 1])
def test_a_batch_is_a_whole_number_of_images(batch):
    with pytest.raises(HwmodelError) as caught:
        evaluate("vgg-small", "ascend", "fp", batch=batch, accounting="paper")
    assert str(caught.value) == f"batch {batch!r}: must be a whole number from 1 to 2147483648"


def test_a_mode_is_training_or_inference():
    with pytest.raises(HwmodelError) as caught:
        evaluate("vgg-small", "ascend", "fp", mode="train", accounting="paper")
    assert str(caught.value) == "mode 'train': must be one of training, inference"


def test_a_report_lists_what_it_does_not_count():
    trained = evaluate("vgg-small", "ascend", "fp", accounting="paper").not_counted
    pools = 128 * 16**2 + 256 * 8**2 + 512 * 4**2
    assert any(
        line.startswith(
            f"max-pool: 3 layers, no parameters, no multiply-accumulates, {pools:,} output elements"
        )
        for line in trained
    )
    assert any(line.startswith("activation: 8 layers, ") for line in trained)
    assert "the weight update, latent weights, optimizer state, the loss" in trained
    assert set(
        evaluate("vgg-small", "ascend", "fp", mode="inference", accounting="paper").not_counted
    ) < set(trained)
