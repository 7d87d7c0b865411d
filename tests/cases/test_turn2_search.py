"""Searches that once went wrong: what more freedom found was worse, and "proved" was not true."""

import csv
from itertools import pairwise
from math import prod
from pathlib import Path
from time import process_time

import numpy as np
import pytest

from hwmodel.specs.files import load
from hwmodel.specs.hardware import Hardware
from hwmodel.tiling.accesses import traffic
from hwmodel.tiling.level_by_level import level_by_level
from hwmodel.tiling.optimal.bounds import space
from hwmodel.tiling.optimal.budget import Budget
from hwmodel.tiling.optimal.chains import Nest, best_within
from hwmodel.tiling.optimal.search import Options, optimal
from hwmodel.tiling.pricing import memory_energy
from hwmodel.tiling.rows import RowRule
from hwmodel.views.posed import posed
from hwmodel.views.saved_tiling import read_mapping
from tests.exhaustive import cuts, rows_loaded
from tests.simulator import simulate
from tests.specs import STACKED
from tests.strategies import chip

DATA = Path(__file__).parents[1] / "data" / "turn2"
TOUCHED = RowRule()


def modes(problem, hardware, budget):
    """The energy of the level-by-level tiling, and what each mode of the search found."""
    found = [
        optimal(problem, hardware, Options(stationary=stationary, budget=budget)).certificate
        for stationary in ("filter", "either", "best")
    ]
    counted = traffic(problem, level_by_level(problem, hardware), "exact")
    return memory_energy(problem, counted, hardware, 32), *found


def in_order(*energies):
    return all(inner <= outer * (1 + 1e-12) for outer, inner in pairwise(energies))


A1 = "N=16,M=3072,C=768,H=128,W=1,K=1", "32,32,32", "backward-weight"
A2 = "N=16,M=384,C=256,H=13,W=13,K=3,pad=1", "32,32,32", "forward"
A3 = "N=256,M=64,C=1,H=572,W=572,K=3", "16,16,16", "backward-input"


WHOLE = Options().budget


@pytest.mark.parametrize(
    ("hardware", "case", "budget", "filters", "least"),
    [
        (STACKED, A1, WHOLE, 53.484e9, 43.61e9),
        (STACKED, A1, 0, 53.484e9, 43.61e9),
        (STACKED, A2, WHOLE, 10.928e9, 9.531e9),
        (STACKED, A2, 5_000, 10.928e9, 9.531e9),
        ("ascend", A3, WHOLE, 654.64e9, 651.93e9),
    ],
)
def test_A1_to_A3_more_freedom_is_never_worse(hardware, case, budget, filters, least):
    """Filters held and the least energies are an independent search's; the first two it proved."""
    greedy, held, either, best = modes(posed(*case).apart, load(Hardware, hardware), budget)
    assert in_order(greedy, held.energy, either.energy, best.energy)
    assert all(c.lower_bound <= c.energy for c in (held, either, best))
    assert best.lower_bound <= least * 1.0002
    if budget == WHOLE:
        assert held.energy == pytest.approx(filters, rel=2e-4)  # A3 is not proved
        assert least * 0.9998 <= best.energy <= least * 1.01


def test_A4_a_tiling_that_cuts_the_reduction_further_out_is_found():
    """Sums that rest in a free memory are better cut there; the tiling is another search's."""
    asked = posed("N=16,M=512,C=512,H=7,W=7,K=3,pad=1", "32,32,32", "forward")
    problem, hardware = asked.apart, load(Hardware, str(DATA / "ascend_onchip.yaml"))
    better = read_mapping(DATA / "ascend_onchip_better.json", asked, hardware).mapping
    priced = by_hand(problem, hardware, better)
    assert priced == pytest.approx(302.70e6, rel=1e-5)
    _, certificate = optimal(problem, hardware)
    assert certificate.proved
    assert certificate.energy <= priced * (1 + 1e-12)
    assert certificate.energy == pytest.approx(302.70e6, rel=1e-5)


def by_hand(problem, hardware, mapping):
    """Energy of a tiling with filters held, every loop walked; one group.

    Filters pass once for each block of ifmaps above, ifmaps once for each block of filters below;
    a sum comes up after each block of the reduction, and comes down but for the first time after
    one has gone on upwards.
    """
    n, energy, leaving = problem.extent, 0.0, 1
    chains = {d: [getattr(t, d) for t in mapping.tiles] for d in n._fields}
    walked = {d: cuts(getattr(n, d), chain) for d, chain in chains.items()}
    for level in range(len(hardware.levels)):
        above = {d: len(w[level]) for d, w in walked.items()}
        last = level == len(mapping.tiles)
        below = above if last else {d: len(w[level + 1]) for d, w in walked.items()}
        if last:  # every output and tap by itself
            axes = [[(i, i + 1) for i in range(getattr(n, d))] for d in ("HO", "HF", "WO", "WF")]
        else:
            axes = [walked[d][level + 1] for d in ("HO", "HF", "WO", "WF")]
        rows = rows_loaded(problem.height, TOUCHED, *axes[:2])
        columns = rows_loaded(problem.width, TOUCHED, *axes[2:])
        reads_I = n.N * n.C * rows * columns * below["M"]
        reads_F = n.M * n.C * n.HF * n.WF * above["N"] * above["HO"] * above["WO"]
        sums = prod(below[d] for d in ("C", "HF", "WF"))
        outputs = n.N * n.M * n.HO * n.WO
        of_I, of_F, of_O = (hardware.holder(level, operand) for operand in "IFO")
        energy += reads_I * problem.bits.I * of_I.read_energy_per_bit
        energy += reads_F * problem.bits.F * of_F.read_energy_per_bit
        wide = max(32, problem.bits.O)
        energy += outputs * (sums - leaving) * wide * of_O.read_energy_per_bit
        energy += outputs * (sums - 1) * wide * of_O.write_energy_per_bit
        energy += outputs * problem.bits.O * of_O.write_energy_per_bit
        leaving = sums
    return energy


SMALL = (
    "N=2,M=2,C=2,H=6,W=1,K=2x1,stride=1x1,pad=1x0,dilation=2x1,groups=2",
    "32,4,16",
    "backward-input",
)
LARGER = "N=1,M=2,C=4,H=3,W=4,K=3x1,stride=1x2,pad=0x2", "32,8,8", "backward-input"


def simulated(problem, hardware, mapping):
    """Energy of a tiling whose blocks are walked down to the MACs."""
    wide = max(32, problem.bits.O)
    energy = 0.0
    for level, asked in enumerate(simulate(problem, mapping.tiles, mapping.held, TOUCHED)):
        of_I, of_F, of_O = (hardware.holder(level, operand) for operand in "IFO")
        energy += asked["I_reads"] * problem.bits.I * of_I.read_energy_per_bit
        energy += asked["F_reads"] * problem.bits.F * of_F.read_energy_per_bit
        energy += asked["O_partial_reads"] * wide * of_O.read_energy_per_bit
        energy += asked["O_partial_writes"] * wide * of_O.write_energy_per_bit
        energy += asked["O_writes"] * problem.bits.O * of_O.write_energy_per_bit
    return energy


@pytest.mark.filterwarnings("ignore::hwmodel.errors.SpecWarning")  # prices drawn at random
@pytest.mark.parametrize(
    ("case", "name", "stationary", "least"),
    [
        (SMALL, "bf_worse_1_305", "filter", 11703.8208),
        (LARGER, "bf_worse_1_171", "best", 68150.2016),
    ],
)
def test_A5_proved_is_true_where_inner_memories_are_dearer(case, name, stationary, least):
    """The least energies are those of all tilings, and of the tiling itself, walked."""
    asked = posed(*case)
    problem, hardware = asked.apart, load(Hardware, str(DATA / f"{name}.yaml"))
    mapping, certificate = optimal(problem, hardware, Options(stationary=stationary))
    assert certificate.proved
    assert certificate.energy == pytest.approx(least, rel=1e-12)
    assert simulated(problem, hardware, mapping) == pytest.approx(least, rel=1e-12)
    if name == "bf_worse_1_305":
        better = read_mapping(DATA / f"{name}_better.json", asked, hardware).mapping
        assert simulated(problem, hardware, better) == pytest.approx(least, rel=1e-12)


HARD = {  # chip, layer, widths, pass, what may stay; least energy of a search of its own
    "A7": ("ascend", "N=1,M=64,C=64,H=56,W=56,K=3,pad=1", "16,16,16", "forward", "best", 52.20e6),
    "A7 filter": (
        "ascend", "N=1,M=64,C=64,H=56,W=56,K=3,pad=1", "16,16,16", "forward", "filter", 53.38e6,
    ),
    "A9 product": ("v100", "N=256,M=49152,C=12288,H=1,W=1,K=1", "8,8,8", "forward", "filter", None),
    "A9 rate 36": (
        "ascend", "N=4096,M=256,C=2048,H=65,W=65,K=3,pad=36,dilation=36", "32,32,32", "forward",
        "filter", None,
    ),
    "A10": ("v100", "N=256,M=64,C=256,H=56,W=56,K=1", "32,32,32", "forward", "best", 53.7204e9),
}  # fmt: skip


@pytest.mark.parametrize("case", HARD)
def test_A7_A9_A10_hard_layers_are_proved(case):
    """A7: a general mapper's tiling costs 52.83 uJ under the same rules."""
    chip, conv, bits, phase, stationary, least = HARD[case]
    problem = posed(conv, bits, phase).apart
    _, certificate = optimal(problem, load(Hardware, chip), Options(stationary=stationary))
    assert certificate.proved
    if least:
        assert certificate.energy == pytest.approx(least, rel=1e-4)


A6 = "N=4,M=96,C=3,H=227,W=227,K=11,stride=4", "16,16,16", "forward"


@pytest.mark.parametrize("stationary", ("filter", "best"))
def test_A6_a_search_that_meets_nests_without_a_tiling_goes_on(stationary):
    hardware = load(Hardware, str(DATA / "isca.yaml"))
    options = Options(stationary=stationary, partial_sum_bits=16)
    _, certificate = optimal(posed(*A6).apart, hardware, options)
    assert certificate.lower_bound <= certificate.energy < 1.05 * certificate.lower_bound


def test_A6_the_command_itself_is_a_report(hwmodel, tmp_path):
    """AlexNet's products by hand, four images: conv1 to conv5 in groups of two, and fc6 to fc8."""
    chip, accounting = DATA / "isca.yaml", DATA / "full16best.yaml"
    words = ["--method", "fp16", "--batch", "4", "--mode", "inference", "--csv", "a.csv"]
    words += ["--hardware", chip, "--accounting", accounting]
    code, _, err = hwmodel("report", "alexnet-grouped", *words)
    assert code == 0, err
    with open(tmp_path / "a.csv") as table:
        rows = [row for row in csv.DictReader(table) if row["component"] == "product"]
    conv = 105_415_200 + 223_948_800 + 149_520_384 + 112_140_288 + 74_760_192
    linear = 37_748_736 + 16_777_216 + 4_096_000
    assert sum(int(r["count"]) for r in rows if r["operation"] == "mac") == 4 * (conv + linear)


@pytest.mark.parametrize("loop", (1, 3, 4, 5, 6))
@pytest.mark.parametrize("uncut", ([], [5, 6], [3, 4]))
def test_A6_a_nest_of_which_a_loop_may_have_no_pieces_holds_no_tiling(loop, uncut):
    """Whatever the rows of an axis are made of: cuts of its outputs, of its taps or of both."""
    problem, hardware = posed(*A6).apart, chip((10**9,) * 3, [(1.0, 1.0)] * 4)
    prepared = space(problem, hardware, 16, TOUCHED, "held", "upper", 10**6, Budget(10**6))
    pieces = np.array([[2, 3, 3, 5, 5, 2, 2], [4, 5, 3, 7, 7, 3, 3], [4, 48, 3, 11, 11, 11, 11]])
    pieces[:, uncut] = 1
    most = pieces + 2
    most[:, loop] = 0
    smallest = -(-np.array(problem.extent) // pieces)
    axes = [prepared.height.outs, prepared.width.outs, prepared.height.taps, prepared.width.taps]
    loops = [prepared.N, prepared.M, prepared.C, *axes]
    places = [
        [list(tiles).index(tile) for tiles, tile in zip(loops, row, strict=True)]
        for row in smallest.tolist()
    ]
    largest = -(-np.array(problem.extent) // np.maximum(pieces - 1, 1)) - (pieces > 1)
    nest = Nest(np.array(places), smallest, largest, pieces, most)
    found = best_within(prepared, ("F", "F", "F"), nest)
    assert found.mapping is None and found.energy == float("inf")


def test_A11_a_transposed_layer_of_the_widest_stride_takes_seconds():
    """Rows at each of 1,024 phases are looked at together; one by one they took two minutes."""
    conv = "N=1,M=3,C=3,H=32765,W=32765,K=1021,stride=1024"
    problem, hardware = posed(conv, "32,32,32", "backward-input").apart, load(Hardware, "ascend")
    begun = process_time()
    _, certificate = optimal(problem, hardware)
    assert process_time() - begun < 20
    assert certificate.lower_bound <= certificate.energy
