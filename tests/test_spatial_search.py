"""The search on chips with memories side by side: enumeration, its bound, what may not get dearer."""

import os
from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from hwmodel.errors import Infeasible, SpecWarning
from hwmodel.specs.files import load
from hwmodel.specs.hardware import Hardware
from hwmodel.tiling.accesses import Mapping
from hwmodel.tiling.options import (
    Array,
    Bound,
    Memories,
    Memory,
    MemoryLevel,
    SearchOptions,
    memories,
)
from hwmodel.tiling.spatial import mapper
from hwmodel.tiling.spatial.asked import asked, time
from hwmodel.tiling.spatial.bound import bound
from hwmodel.tiling.spatial.descent import descended
from hwmodel.tiling.spatial.mapper import mapped
from hwmodel.tiling.spatial.parted import Parts
from hwmodel.tiling.spatial.relaxed import Energies
from hwmodel.tiling.spatial.space import Space
from hwmodel.tiling.spatial.trials import Search
from hwmodel.work.problem import Extents, Problem, Widths, Window
from hwmodel.work.tensor import Direction, Role
from hwmodel.work.tensor import product as number
from tests.exhaustive import most
from tests.strategies import examples, prices

LOOPS = Extents._fields
AXES = {"positions": ("N", "HO", "WO"), "reduction": ("C", "HF", "WF")} | {x: (x,) for x in LOOPS}
SLOW = settings(
    max_examples=examples(200),
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.filter_too_much],
)


@st.composite
def small_problems(draw):
    """One to three loops of 2 to 4, the others of 1."""
    sizes = [1] * 7
    for _ in range(draw(st.integers(1, 3))):
        sizes[draw(st.integers(0, 6))] = draw(st.integers(2, 4))
    windows = [
        Window(draw(st.integers(1, 6)), *(draw(st.integers(1, 2)) for _ in "sd"),
               pad=draw(st.integers(0, 1)), spread=draw(st.sampled_from((1, 1, 2))))
        for _ in range(2)
    ]  # fmt: skip
    bits = draw(st.builds(Widths, *[st.sampled_from((1, 4, 8))] * 3))
    return Problem(Extents(*sizes), *windows, bits, draw(st.sampled_from((1, 1, 2, 3))))


def bounds(draw):
    names = draw(st.sampled_from((("M",), ("M", "positions"), ("C", "positions"), ("reduction",))))
    return tuple(Bound(AXES[name], draw(st.integers(1, 4))) for name in names)


@st.composite
def levels(draw, name, *, outermost):
    holds = "IFO" if outermost else draw(st.sampled_from(("IFO", "IFO", "IFO", "IO", "FO", "I")))
    capacity = None if outermost else draw(st.integers(40, 400))
    parts = [tuple(holds)]
    if not outermost and len(holds) > 1 and draw(st.booleans()):
        parts = [(holds[0],), tuple(holds[1:])]
    buffers = tuple(
        Memory(f"{name}{i}", part, capacity, draw(prices), draw(prices))
        for i, part in enumerate(parts)
    )
    if outermost or draw(st.integers(0, 3)) == 0:
        return MemoryLevel(name, buffers)
    merges = st.booleans()
    axes = bounds(draw) if draw(st.booleans()) else None
    fanout = draw(st.integers(2, 4))
    if axes:
        fanout = 1
        for axis in axes:
            fanout *= axis.most
        assume(fanout > 1)
    return MemoryLevel(name, buffers, fanout, axes, draw(merges), draw(merges), draw(prices))


@st.composite
def chips(draw):
    inner = [draw(levels(f"L{i}", outermost=False)) for i in range(1, draw(st.integers(2, 3)))]
    array = None
    if draw(st.integers(0, 3)):
        lanes = draw(st.sampled_from((None, 8, 16)))
        holds = draw(st.sampled_from(("none", "I", "F", "O")))
        array = Array(bounds(draw) if draw(st.booleans()) else (), holds, lanes, draw(prices))
    static = draw(prices) if array else 0.0
    chip = Memories((draw(levels("L0", outermost=True)), *inner), array, static)
    assume(chip.spatial)
    return chip


options = st.builds(
    SearchOptions,
    search=st.just("optimal"),
    stationary=st.sampled_from(("filter", "either", "best")),
    counting=st.just("exact"),
    rows=st.just("touched"),
    padding=st.sampled_from(("skipped", "counted")),
    partial_sum_bits=st.sampled_from((8, 16)),
    transfers=st.sampled_from(("upper", "both")),
)


def energy(problem, mapping, chip, chosen):
    """What a mapping costs, entry by entry of what is asked for, and its time."""
    wide, total = max(chosen.partial_sum_bits, problem.bits.O), 0
    found = asked(problem, mapping, chip, chosen.rule, chosen.transfers)
    for level, several in enumerate(found):
        for x, direction, role, factors in several:
            bits = getattr(problem.bits, x) if role == Role.OPERAND else wide
            if direction == Direction.HOP:
                price = chip.levels[level].hop_energy_per_bit
            else:
                memory = chip.holder(level, x)
                reads = direction == Direction.READ
                price = memory.read_energy_per_bit if reads else memory.write_energy_per_bit
            total += number(factors) * bits * price
    taken = time(problem, mapping, chip, chosen.rule)
    if taken:
        total += number(taken.cycles) * chip.array.cycle_energy
        total += number(taken.moments) * chip.moment_energy
    return total


def fits(problem, mapping, chip, chosen):
    """Capacities, fan-outs and the array, by hand."""
    sums, n = max(chosen.partial_sum_bits, problem.bits.O), problem.extent
    for level, (union, tile, held) in enumerate(
        zip(mapping.unions, mapping.tiles, mapping.held, strict=True), 1
    ):
        pieces = {x: -(-getattr(union, x) // getattr(tile, x)) for x in LOOPS}
        axes = chip.levels[level].axes or [Bound(LOOPS, chip.levels[level].fanout)]
        pieces["g"] = mapping.groups[level - 1] if mapping.groups else 1
        axes = [Bound((*a.loops, "g"), a.most) if "M" in a.loops else a for a in axes]
        if not within(pieces, axes):
            return False
        area = 1
        for w, o, t in ((problem.height, "HO", "HF"), (problem.width, "WO", "WF")):
            outs, taps = getattr(tile, o), getattr(tile, t)
            area *= most(w, chosen.rule, outs, taps, getattr(n, o), getattr(n, t))
        resting = held == "O" or (chip.array and level == len(mapping.tiles))
        size = {
            "I": problem.bits.I * tile.N * tile.C * area,
            "F": problem.bits.F * tile.M * tile.C * tile.HF * tile.WF,
            "O": sums * tile.N * tile.M * tile.HO * tile.WO * bool(resting),
        }
        below = 1  # groups side by side under this level, each with its tiles here
        for side in mapping.groups[level:]:
            below *= side
        for memory in chip.levels[level].buffers:
            used = below * sum(size[x] for x in memory.holds)
            if memory.capacity_bits and used > memory.capacity_bits:
                return False
    return chip.array is None or in_a_cycle(problem, mapping.cycle, chip)


def in_a_cycle(problem, cycle, chip):
    bits = max(problem.bits.I, problem.bits.F)
    lanes = max(1, chip.array.operand_bits // bits) if chip.array.operand_bits else 1
    axes = [a._replace(most=a.most * (lanes if "C" in a.loops else 1)) for a in chip.array.axes]
    if not any("C" in axis.loops for axis in axes):
        axes.append(Bound(("C",), lanes))
    return within(cycle._asdict(), axes)


def within(pieces, axes):
    for axis in axes:
        together = 1
        for loop in axis.loops:
            together *= pieces[loop]
        if together > axis.most:
            return False
    return all(pieces[x] == 1 for x in pieces if not any(x in axis.loops for axis in axes))


def chains(length, sizes):
    found = [(length,)]
    for _ in range(sizes):
        found = [(*c, t) for c in found for t in range(1, c[-1] + 1)]
    return [c[1:] for c in found]


def every_mapping(problem, chip, chosen):
    """All mappings that fit, walked one by one, and what each costs."""
    depth = len(chip.levels) - 1
    sizes = 2 * depth + (chip.array is not None)
    each = [chains(length, sizes) for length in problem.extent]
    walked = 1
    for some in each:
        walked *= len(some)
    kinds = {"filter": ["F" * depth], "either": ["F" * depth, "I" * depth]}
    holdings = kinds.get(chosen.stationary, ["".join(h) for h in product("FIO", repeat=depth)])
    side = list(product(range(1, problem.groups + 1), repeat=depth))
    assume(walked * len(holdings) * len(side) <= 4000)
    for some in product(*each):
        tiles = [Extents(*(chain[i] for chain in some)) for i in range(sizes)]
        cycle = tiles.pop() if chip.array else None
        for held, groups in product(holdings, side):
            mapping = Mapping(tuple(tiles[1::2]), tuple(held), tuple(tiles[::2]), cycle, groups)
            if fits(problem, mapping, chip, chosen):
                yield mapping, energy(problem, mapping, chip, chosen)


def enumerated(problem, chip, chosen):
    """The least energy of all mappings; None where none fits."""
    return min((paid for _, paid in every_mapping(problem, chip, chosen)), default=None)


def ordered(chip):
    """The chip with its prices in order: none of an outer memory is below one of an inner."""
    memories = [memory for level in chip.levels for memory in level.buffers]
    prices = sorted(
        (price for memory in memories for price in (memory[3], memory[4])), reverse=True
    )
    paid = zip(memories, prices[::2], prices[1::2], strict=True)
    dear = iter([memory._replace(**dict(zip(PAID, two, strict=True))) for memory, *two in paid])
    levels = (
        level._replace(buffers=tuple(next(dear) for _ in level.buffers)) for level in chip.levels
    )
    return chip._replace(levels=tuple(levels))


PAID = ("read_energy_per_bit", "write_energy_per_bit")


@SLOW
@given(small_problems(), chips(), options, st.booleans())
def test_the_search_equals_enumeration_and_the_bound_is_below(problem, chip, chosen, in_order):
    """With prices as they fall, and in the order of the levels."""
    chip = ordered(chip) if in_order else chip
    best = enumerated(problem, chip, chosen)
    if best is None:
        with pytest.raises(Infeasible):
            mapped(problem, chip, chosen)
        return
    mapping, proof = mapped(problem, chip, chosen)
    assert proof.proved and proof.gap == 0
    assert proof.energy == pytest.approx(best, rel=1e-9)
    assert energy(problem, mapping, chip, chosen) == pytest.approx(best, rel=1e-9)
    assert fits(problem, mapping, chip, chosen)
    assert bound(problem, chip, chosen).energy <= best * (1 + 1e-9)
    choices = mapper.holdings(chosen.stationary, len(chip.levels) - 1)
    parts = Parts.of(Space(problem, chip, chosen), choices, apart=problem.groups > 1)
    assert parts.least <= best * (1 + 1e-9)
    parts.cut(float("inf"))
    assert parts.least <= best * (1 + 1e-9)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mapper, "WALKED", 0)
        mapping, proof = mapped(problem, chip, chosen)
    assert proof.lower_bound <= best * (1 + 1e-9)
    assert proof.energy >= best * (1 - 1e-9)
    assert energy(problem, mapping, chip, chosen) == pytest.approx(proof.energy, rel=1e-9)
    assert fits(problem, mapping, chip, chosen)


def moments(problem, mapping, chip, chosen):
    """Cycles of the whole chip; of groups side by side those that are done together are one."""
    return number(time(problem, mapping, chip, chosen.rule).moments)


@settings(SLOW, max_examples=examples(60))
@given(small_problems(), chips(), options)
def test_of_equally_dear_mappings_the_soonest_done_is_found(problem, chip, chosen):
    """Where time is free, against all of them."""
    assume(chip.array)
    chip = chip._replace(moment_energy=0.0)
    every = [*every_mapping(problem, chip, chosen)]
    least = min((paid for _, paid in every), default=0)
    assume(least > 0)
    dear = [mapping for mapping, paid in every if paid <= least * (1 + 1e-12)]
    assume(len({moments(problem, one, chip, chosen) for one in dear}) > 1)
    mapping, proof = mapped(problem, chip, chosen)
    assert proof.proved and proof.energy == pytest.approx(least, rel=3e-9)
    soonest = min(moments(problem, one, chip, chosen) for one in dear)
    assert moments(problem, mapping, chip, chosen) == soonest


def layer(N, M, C, H, K, stride, pad, groups=1):
    out = (H + 2 * pad - K) // stride + 1
    window = Window(H, stride, 1, pad, pad)
    extent = Extents(N, M // groups, C // groups, out, out, K, K)
    return Problem(extent, window, window, Widths(16, 16, 16), groups)


ALEXNET = [
    layer(16, 96, 3, 227, 11, 4, 0), layer(16, 256, 96, 27, 5, 1, 2, 2),
    layer(16, 384, 256, 13, 3, 1, 1), layer(16, 384, 384, 13, 3, 1, 1, 2),
    layer(16, 256, 384, 13, 3, 1, 1, 2),
]  # fmt: skip
ISCA = SearchOptions("optimal", "best", "exact", "touched", "counted", 16)


@pytest.mark.skipif(os.environ.get("HWMODEL_TESTS") != "thorough", reason="half a minute")
def test_eyeriss_on_alexnet_is_the_published_one():
    """Fig. 10 of the ISCA paper and its authors' code, batch 16, in 10^9 MAC; nothing fitted."""
    chip = memories(load(Hardware, "eyeriss-isca"))
    words = {"DRAM": 200, "buffer": 6, "RF": 1}
    found, macs, paid, least = dict.fromkeys([*words, "array"], 0), 0, 0, 0
    for problem in ALEXNET:
        mapping, proof = mapped(problem, chip, ISCA)
        for level, several in enumerate(asked(problem, mapping, chip, ISCA.rule, "upper")):
            for _, direction, _, factors in several:
                name = chip.levels[level].name
                if direction == Direction.HOP:
                    found["array"] += 2 * number(factors)
                else:
                    found[name] += words[name] * number(factors)
        n = problem.extent
        macs += problem.groups * n.N * n.M * n.C * n.HO * n.WO * n.HF * n.WF
        paid, least = paid + proof.energy, least + proof.lower_bound
    assert macs == 10_652_557_824
    assert sum(found.values()) == pytest.approx(paid, rel=1e-9)
    assert found["RF"] / 1e9 == pytest.approx(42.0, abs=0.05)
    assert 1.75 <= found["array"] / 1e9 <= 2.2
    assert 1.0 <= found["buffer"] / 1e9 <= 1.3
    assert 7.75 <= found["DRAM"] / 1e9 <= 8.0
    assert 5.9 <= (paid + macs) / macs <= 6.1
    assert (paid + macs) / (least + macs) <= 1.01


@pytest.mark.skipif(os.environ.get("HWMODEL_TESTS") != "thorough", reason="some seconds each")
@pytest.mark.parametrize(
    ("rows", "outs", "ins", "gap"), [(4096, 12288, 49152, 0.01), (128, 4096, 1024, 0.03)]
)
def test_products_on_a_gpu_are_near_the_bound(rows, outs, ins, gap):
    """Of SMs and lanes side by side, all kept busy; the bound level by level was 17 % below."""
    chip = memories(load(Hardware, "v100-board"))
    extent = Extents(rows, outs, ins, 1, 1, 1, 1)
    problem = Problem(extent, Window(1), Window(1), Widths(32, 32, 32))
    _, proof = mapped(problem, chip, replace(ISCA, partial_sum_bits=32))
    assert proof.gap <= gap


def test_memories_idle_together_between_zeros():
    """A signal of stride 5 backwards: pieces of multiples of 5 meet zeros at the same moments.

    Those of other lengths make five times the moments; the gap was 15 %.
    """
    chip = memories(load(Hardware, "v100-board"))
    window = Window(16000, 1, 1, 4, 4, 5)
    extent = Extents(16, 1, 32, 80000, 1, 10, 1)
    problem = Problem(extent, window, Window(1), Widths(1, 1, 1))
    mapping, proof = mapped(problem, chip, replace(ISCA, padding="skipped", partial_sum_bits=32))
    assert proof.gap <= 0.03
    assert mapping.tiles[-1].HO % 5 == 0


@SLOW
@given(small_problems(), chips(), options)
def test_what_serves_less_is_never_cheaper(problem, chip, chosen):
    """More fan-out or room is never dearer, fewer services and both sides never cheaper."""
    best = optimum(problem, chip, chosen)
    assume(best is not None)
    more = best * (1 + 1e-9)
    assert optimum(problem, chip, replace(chosen, transfers="both")) >= (
        optimum(problem, chip, replace(chosen, transfers="upper")) * (1 - 1e-9)
    )
    inner = chip.levels[1:]
    for field, value in (("multicast", False), ("reduction", False)):
        less = [level._replace(**{field: value}) for level in inner]
        assert optimum(problem, chip._replace(levels=(chip.levels[0], *less)), chosen) >= (
            best * (1 - 1e-9)
        )
    wider = [level if level.axes else level._replace(fanout=2 * level.fanout) for level in inner]
    assert optimum(problem, chip._replace(levels=(chip.levels[0], *wider)), chosen) <= more
    roomy = [
        level._replace(
            buffers=tuple(b._replace(capacity_bits=2 * b.capacity_bits) for b in level.buffers)
        )
        for level in inner
    ]
    assert optimum(problem, chip._replace(levels=(chip.levels[0], *roomy)), chosen) <= more


def optimum(problem, chip, chosen):
    """The proved optimum; None where nothing fits, or the space is too large to be walked."""
    try:
        _, proof = mapped(problem, chip, chosen)
    except Infeasible:
        return None
    return proof.energy if proof.proved else None


def depthwise(groups, axes):
    """`groups` channels of 4 x 4 outputs under 3 x 3 taps, on four memories of one MAC each."""
    window = Window(6, 1, 1, 0, 0)
    problem = Problem(Extents(1, 1, 1, 4, 4, 3, 3), window, window, Widths(8, 8, 8), groups)
    levels = [
        MemoryLevel(name, (Memory(name, ("I", "F", "O"), bits, price, price),), fanout, some)
        for name, bits, price, fanout, some in (
            ("DRAM", None, 200.0, 1, None), ("RF", 8 * 61, 1.0, 4, axes)
        )
    ]  # fmt: skip
    return problem, Memories(tuple(levels), Array((Bound(LOOPS, 1),)), moment_energy=1e6)


@pytest.mark.parametrize(
    ("axes", "moments", "side"),
    [
        (None, 5 * 72, 2),  # two groups, each over two memories: none ever idles
        ((Bound(("M",), 4),), 3 * 144, 4),  # groups are filters: 4, 4 and 2 of them
        ((Bound(("HO",), 4),), 10 * 36, 1),  # rows alone: one group after the other
    ],
)
def test_groups_lie_side_by_side_by_hand(axes, moments, side):
    """Ten groups of 144 products. A group is 36 of I, 9 of F and 16 sums, as much as an RF has."""
    problem, chip = depthwise(10, axes)
    mapping, proof = mapped(problem, chip, ISCA)
    taken = time(problem, mapping, chip, ISCA.rule)
    assert number(taken.moments) == moments
    assert number(taken.cycles) == 10 * 144
    assert taken.utilisation == pytest.approx(1440 / (4 * moments))
    assert mapping.groups == ((side,) if side > 1 else ())
    assert proof.energy == pytest.approx(energy(problem, mapping, chip, ISCA))
    assert fits(problem, mapping, chip, ISCA)


def test_the_bound_knows_of_groups_side_by_side(monkeypatch):
    """Ten groups on four memories take 3 rounds of 144 moments, at least 2.5; the bound had 10."""
    monkeypatch.setattr(mapper, "WALKED", 0)
    problem, chip = depthwise(10, (Bound(("M",), 4),))
    _, proof = mapped(problem, chip, ISCA)
    assert 2.5 * 144e6 <= proof.lower_bound < 3 * 144e6 <= proof.energy


def test_a_bound_above_what_is_found_is_told_and_no_proof(monkeypatch):
    """It was cut to the energy, and the mapping called proved."""
    monkeypatch.setattr(mapper, "WALKED", 0)
    true = Energies.points

    def false(energies, box):
        return [
            one._replace(relaxed=one.relaxed._replace(energy=2 * one.relaxed.energy))
            for one in true(energies, box)
        ]

    monkeypatch.setattr(Energies, "points", false)
    with pytest.warns(SpecWarning, match="below the bound"):
        _, proof = mapped(*depthwise(10, None), ISCA)
    assert (proof.proved, proof.lower_bound, proof.gap) == (False, 0.0, 1.0)


def test_a_descent_ends_where_rounding_calls_each_of_two_mappings_better():
    """Prices a hundred million million times apart, of sums that cancel, made it go on for ever."""
    held = SimpleNamespace(
        best={},
        near=lambda group, chain, most: None,
        best_of_lists=lambda point, near: (7.0, ((3 - point[0][0],),)),
    )
    assert descended(held, ((1,),)) == (7.0, ((2,),))


def test_a_memory_further_out_holds_the_tiles_of_all_groups_by_hand():
    """One word of I and one of F a group are 16 bit; in 48 bit there is room for three groups.

    So ten groups take four rounds of 144, though there are four memories below.
    """
    problem, chip = depthwise(10, (Bound(("M",), 4),))
    dram, rf = chip.levels
    small = MemoryLevel("SRAM", (Memory("SRAM", ("I", "F", "O"), 48, 1.0, 1.0),))
    chip = chip._replace(levels=(dram, small, rf))
    mapping, _ = mapped(problem, chip, ISCA)
    assert number(time(problem, mapping, chip, ISCA.rule).moments) == 4 * 144
    assert mapping.groups == (1, 3) and mapping.together(1) == 3
    assert fits(problem, mapping, chip, ISCA)


@st.composite
def trees(draw):
    """Three levels, the middle one many times, so that each of it may begin sums of its own."""
    paid = st.sampled_from((0.05, 0.5, 3.0, 6.0, 20.0))
    outer, hop = draw(paid), draw(st.sampled_from((0.0, 0.5, 2.0)))
    middle, inner = draw(paid), draw(paid)
    fanout, leaf = draw(st.sampled_from((4, 16, 80))), draw(st.sampled_from((1, 1, 4)))
    held = draw(st.sampled_from(("IFO", "IFO", "FO")))
    most = draw(st.sampled_from((97, 256, 2048)))
    levels = (
        MemoryLevel("L0", (Memory("L00", tuple("IFO"), None, outer, outer),)),
        MemoryLevel(
            "L1",
            (Memory("L10", tuple(held), 10**6, middle, middle),),
            fanout,
            None,
            True,
            True,
            hop,
        ),
        MemoryLevel(
            "L2",
            (Memory("L20", tuple("IFO"), most, inner, inner),),
            leaf,
            None,
            True,
            True,
            hop * (leaf > 1),
        ),
    )
    lanes = draw(st.sampled_from((1, 4)))
    return Memories(levels, Array((Bound(("C",), lanes),), "none"), 0.0)


@settings(SLOW, max_examples=examples(200, part=5))
@given(
    trees(), options, st.integers(1, 5), st.sampled_from((16, 64, 256)), st.integers(1, 4),
    st.sampled_from((Widths(8, 8, 8), Widths(1, 1, 8), Widths(1, 2, 8))),
)  # fmt: skip
def test_sums_that_begin_in_many_memories_are_not_bounded_as_in_one(chip, chosen, M, C, rows, bits):
    """Long reductions over the memories of a middle level: no mapping costs less than its bound."""
    chosen = replace(chosen, transfers="upper")
    problem = Problem(Extents(1, M, C, rows, 1, 1, 1), Window(rows), Window(1), bits, 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mapper, "WALKED", 0)
        mapping, proof = mapped(problem, chip, chosen)  # which warns of a bound above
    paid = energy(problem, mapping, chip, chosen)
    assert fits(problem, mapping, chip, chosen)
    assert proof.lower_bound <= paid * (1 + 1e-9)
    assert bound(problem, chip, chosen).energy <= paid * (1 + 1e-9)


def test_bounding_rows_have_the_bound_of_all_levels_alone():
    """Of five outputs at a stride of four the rows between are read by the whole, not by parts."""
    memory = (Memory("L00", tuple("IFO"), None, 6, 3.3),)
    inner = (Memory("L10", ("F", "O"), 1_999_999, 6, 0.5),)
    array = Array((Bound(("C", "HF", "WF"), 12), Bound(("M",), 1)), "I", 8)
    chip = Memories((MemoryLevel("L0", memory), MemoryLevel("L1", inner)), array)
    problem = Problem(
        Extents(1, 2, 3, 5, 1, 1, 1), Window(11, 4, 2, 3, 3), Window(1), Widths(32, 3, 3), 1
    )
    chosen = SearchOptions("optimal", "either", "exact", "bounding", "counted", 32)
    walked = mapped(problem, chip, chosen)[1]
    assert walked.proved
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mapper, "WALKED", 0)
        proof = mapped(problem, chip, chosen)[1]
    assert proof.lower_bound <= walked.energy * (1 + 1e-9)


@pytest.mark.parametrize("walked", [0, 3_000_000])
def test_on_a_chip_where_nothing_costs_anything_a_mapping_is_found(monkeypatch, walked):
    """Then no plan is counted at all."""
    monkeypatch.setattr(mapper, "WALKED", walked)
    levels = [
        MemoryLevel(f"L{i}", (Memory(f"L{i}0", tuple("IFO"), room, 0.0, 0.0),), fanout)
        for i, (room, fanout) in enumerate([(None, 1), (400, 3)])
    ]
    problem = Problem(
        Extents(2, 4, 3, 5, 1, 3, 1), Window(6, 2, 2, 1), Window(1), Widths(8, 8, 8), 1
    )
    for array in (None, Array((Bound(("C",), 2),), "O")):
        for rows in ("filter", "best"):
            chip = Memories(tuple(levels), array)
            chosen = SearchOptions("optimal", rows, "exact", "touched", "skipped", 8)
            mapping, proof = mapped(problem, chip, chosen)
            assert proof.energy == 0 and proof.proved and fits(problem, mapping, chip, chosen)


@pytest.mark.parametrize("share", [1, 12])
def test_a_longer_look_is_taken_where_the_gap_is_wide_and_the_bound_is_that_of_all_parts(
    monkeypatch, share
):
    """Of SMs that are served one by one nothing else is known: the certificate has the parts'."""
    made, looks = [], []
    of, longer = Parts.of, Search.longer

    def spied(*given, **named):
        made.append(of(*given, **named))
        return made[-1]

    def looked(self, floor, near, enough):
        best = longer(self, floor, near, enough)
        looks.append((floor, enough, best.energy))
        return best

    monkeypatch.setattr(mapper.Parts, "of", spied)
    monkeypatch.setattr(Search, "longer", looked)
    chip = memories(load(Hardware, "v100-board"))
    rules = replace(ISCA, padding="skipped", partial_sum_bits=32, share=share)
    window = Window(14, 1, 1, 1, 1)
    wide = Problem(Extents(16, 256, 256, 14, 14, 3, 3), window, window, Widths(16, 16, 16))
    _, proof = mapped(wide, chip, rules)
    assert len(looks) == (share == 1)
    assert proof.lower_bound == made[0].least < proof.energy
    if looks:
        floor, enough, energy = looks[0]
        assert floor == made[0].least and proof.energy <= energy * (1 + 1e-9)
        assert enough == mapper.ENOUGH < mapper.WIDE
    looks.clear()
    near = Problem(Extents(128, 128, 3136, 1, 1, 1, 1), Window(1), Window(1), Widths(16, 16, 16))
    _, proof = mapped(near, chip, rules)
    assert proof.gap < 0.01 and not looks
