"""The bound of all levels together leaves no mapping out, and asks for no more than it costs.

Drawn mappings on chips that are made for them: memories hold just their tiles, and no more lie side
by side than they need, so that a bound that asks for a little more is seen.
"""

import os
from itertools import combinations
from math import prod
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from hwmodel.tiling.accesses import Mapping
from hwmodel.tiling.options import Array, Bound, Memories, Memory, MemoryLevel, SearchOptions
from hwmodel.tiling.rows import RowRule, products
from hwmodel.tiling.spatial import cuts, parted
from hwmodel.tiling.spatial.bound import bound
from hwmodel.tiling.spatial.counts import Tables
from hwmodel.tiling.spatial.links import Nest
from hwmodel.tiling.spatial.parted import Parts
from hwmodel.tiling.spatial.paths import Axis
from hwmodel.tiling.spatial.powers import Former
from hwmodel.tiling.spatial.products import WHOLE, Times
from hwmodel.tiling.spatial.relaxed import Energies
from hwmodel.tiling.spatial.space import Space
from hwmodel.tiling.spatial.terms import terms
from hwmodel.work.problem import Extents, Problem, Widths, Window
from tests.exhaustive import most
from tests.strategies import examples
from tests.test_relaxed import at_sizes, axes
from tests.test_spatial_search import AXES, LOOPS, energy, fits

SPREAD = (None, ("M",), ("C",), ("M", "positions"), ("C", "positions"), ("reduction",),
          ("HO", "HF"), ("N", "M", "HO", "WF"), ())  # fmt: skip
OPTIONS = st.builds(
    SearchOptions,
    search=st.just("optimal"),
    stationary=st.just("best"),
    counting=st.just("exact"),
    rows=st.just("touched"),
    padding=st.sampled_from(("skipped", "skipped", "counted")),
    partial_sum_bits=st.sampled_from((8, 16)),
    transfers=st.sampled_from(("upper", "both")),
)
PRICES = st.sampled_from((0.0, 0.1, 1.0, 1.0, 5.0, 30.0))


@st.composite
def padded(draw):
    """Axes without zeros between rows, in which outputs near borders miss taps."""
    step, dilation = draw(st.sampled_from(((1, 1), (1, 1), (1, 2), (1, 4), (2, 1), (3, 2))))
    size, pad = draw(st.integers(1, 14)), draw(st.integers(0, 6))
    rule = RowRule("touched", "skipped")
    outs, taps = draw(st.integers(1, 14)), draw(st.integers(1, 9))
    return Axis(Window(size, step, dilation, pad), rule, outs, taps)


@st.composite
def problems(draw):
    """One axis of every kind or two, padded or not; the other loops of 1 to 6; some groups."""
    one = Axis(Window(1), RowRule("touched", "skipped"), 1, 1)
    height, width = draw(st.one_of(padded(), padded(), axes())), one
    if draw(st.booleans()):
        width = draw(st.one_of(padded(), axes()))
    n = [draw(st.sampled_from((1, 1, 2, 3, 6))) for _ in range(3)]
    extent = Extents(*n, height.outs, width.outs, height.taps, width.taps)
    bits = draw(st.builds(Widths, *[st.sampled_from((1, 4, 8))] * 3))
    groups = draw(st.sampled_from((1, 1, 1, 2, 5)))
    return Problem(extent, height.window, width.window, bits, groups)


def cut(draw, sizes, may):
    """Tiles of some loops, the others whole."""
    return Extents(*(draw(st.integers(1, n)) if x in may else n for x, n in sizes.items()))


def pieces(union, tile):
    """How many tiles of each loop lie side by side."""
    return {x: -(-getattr(union, x) // getattr(tile, x)) for x in LOOPS}


@st.composite
def cases(draw):
    """A problem, a mapping, and a chip on which it just fits."""
    problem, chosen = draw(problems()), draw(OPTIONS)
    rule = chosen.rule
    ways = (problem.height, "HO", "HF"), (problem.width, "WO", "WF")
    met = (products(w, rule, *(getattr(problem.extent, x) for x in xs)) for w, *xs in ways)
    assume(all(met))
    depth, with_array = draw(st.integers(1, 2)), draw(st.integers(0, 3)) > 0
    held = tuple(draw(st.sampled_from("IFO")) for _ in range(depth))
    above, unions, tiles, side, spreads = problem.extent._asdict(), [], [], [], []
    for _ in range(depth):
        named = draw(st.sampled_from(SPREAD))
        loops = set(LOOPS) if named is None else {x for name in named for x in AXES[name]}
        unions.append(cut(draw, above, LOOPS))
        tiles.append(cut(draw, unions[-1]._asdict(), loops))
        takes_groups = with_array and (named is None or "M" in loops)
        side.append(draw(st.integers(1, problem.groups)) if takes_groups else 1)
        spreads.append(named)
        above = tiles[-1]._asdict()
    levels = [MemoryLevel("L0", (memory(draw, "L0", "IFO", None),))]
    for i, (union, tile, named) in enumerate(zip(unions, tiles, spreads, strict=True)):
        number = pieces(union, tile)
        more = draw(st.integers(0, 1))
        bounds, fanout = None, prod(number.values()) * side[i] + more
        if named is not None:
            bounds = tuple(
                Bound(
                    AXES[x], prod(number[d] for d in AXES[x]) * (side[i] if "M" in AXES[x] else 1)
                )
                for x in named
            )
            fanout = prod(one.most for one in bounds)
        below = prod(side[i + 1 :])
        resting = held[i] == "O" or (with_array and i == depth - 1)
        rooms = {x: below * size for x, size in room(problem, tile, chosen, resting).items()}
        levels.append(level(draw, f"L{i + 1}", rooms, fanout, bounds))
    array, cycle = None, None
    if with_array:
        named = draw(st.sampled_from(SPREAD[1:]))
        loops = {x for name in named for x in AXES[name]}
        cycle = cut(draw, above, loops)
        cycle = Extents(*(getattr(cycle, x) if x in loops else 1 for x in LOOPS))
        bounds = tuple(Bound(AXES[x], prod(getattr(cycle, d) for d in AXES[x])) for x in named)
        array = Array(bounds, draw(st.sampled_from(("none", "I", "F", "O"))), None, draw(PRICES))
    chip = Memories(tuple(levels), array, draw(PRICES) if array else 0.0)
    assume(chip.spatial)
    groups = tuple(side) if prod(side) > 1 else ()
    mapping = Mapping(tuple(tiles), held, tuple(unions), cycle, groups)
    assert fits(problem, mapping, chip, chosen)
    return problem, chip, chosen, mapping


def room(problem, tile, chosen, resting):
    """Bits that a tile takes of a memory, by operand."""
    n, area = problem.extent, 1
    for w, o, t in ((problem.height, "HO", "HF"), (problem.width, "WO", "WF")):
        area *= most(w, chosen.rule, *(getattr(x, d) for x in (tile, n) for d in (o, t)))
    sums = max(chosen.partial_sum_bits, problem.bits.O)
    return {
        "I": problem.bits.I * tile.N * tile.C * area,
        "F": problem.bits.F * tile.M * tile.C * tile.HF * tile.WF,
        "O": sums * tile.N * tile.M * tile.HO * tile.WO * resting,
    }


def memory(draw, name, holds, capacity):
    return Memory(name, tuple(holds), capacity, draw(PRICES), draw(PRICES))


def level(draw, name, rooms, fanout, bounds):
    """A level whose memories have the room that a tile takes; some operands may pass it by."""
    holds = draw(st.sampled_from(("IFO", "IFO", "IFO", "IO", "FO", "IF", "I")))
    parts = [holds] if draw(st.booleans()) else list(holds)
    buffers = tuple(
        memory(draw, f"{name}{part}", part, max(1, sum(rooms[x] for x in part))) for part in parts
    )
    if fanout == 1:
        return MemoryLevel(name, buffers)
    merges = st.sampled_from((True, True, False))
    return MemoryLevel(name, buffers, fanout, bounds, draw(merges), draw(merges), draw(PRICES))


def sizes_of(space, mapping):
    """The sizes that may be chosen, as a mapping has them."""
    rows = [x for pair in zip(mapping.unions, mapping.tiles, strict=True) for x in pair]
    rows += [mapping.cycle] if mapping.cycle else []
    return {
        (x, place): getattr(rows[at], x)
        for x in LOOPS
        for at, place in enumerate(space.columns[x].follows)
        if place >= 0
    }


def drawn(number):
    """So many examples under HWMODEL_TESTS=thorough; nothing is made smaller."""
    phases = [Phase.explicit, Phase.generate]
    checks = list(HealthCheck)
    return settings(
        max_examples=examples(number), deadline=None, phases=phases, suppress_health_check=checks
    )


@drawn(2500)
@given(cases())
def test_no_mapping_is_left_out_or_counts_less_than_is_bounded(case):
    """At the sizes of a mapping: bounds of sizes and of room, every count, and the energy."""
    problem, chip, chosen, mapping = case
    space = Space(problem, chip, chosen)
    former = Former(space, mapping.held, Tables(space.axes), problem.groups > 1 and chip.array)
    sizes = sizes_of(space, mapping)
    for one in (*former.orders(), *former.spreads()):
        assert at_sizes(former, one, sizes) <= 1e-6
    for taken in former.rooms():
        assert sum(np.exp(at_sizes(former, one, sizes)) for one in taken) <= 1 + 1e-6
    nest = Nest(problem, mapping, chip, chosen.rule)
    for plan in terms(problem, chip, mapping.held, chosen):
        counted = nest.counted(plan).elements / problem.groups
        for cut in (False, True):
            least = np.exp(at_sizes(former, former.count(plan), sizes, cut=cut))
            assert least <= counted * (1 + 1e-6)
    if (found := former.energy()) is not None:
        weighted, fixed = found
        least = fixed + sum(w * np.exp(at_sizes(former, one, sizes)) for one, w in weighted)
        assert least <= energy(problem, mapping, chip, chosen) * (1 + 1e-6) + 1e-9


@drawn(300)
@given(cases())
def test_no_mapping_costs_less_than_the_least_of_all_sizes(case):
    """The bound that is solved for, and the one level by level."""
    problem, chip, chosen, mapping = case
    paid = energy(problem, mapping, chip, chosen) * (1 + 1e-9) + 1e-9
    apart = problem.groups > 1 and chip.array is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cuts, "WORTH", 1e-6)  # of short loops rows bend little
        patch.setattr(parted, "MOST", 40)
        parts = Parts.of(Space(problem, chip, chosen), [mapping.held], apart=apart)
        parts.cut(np.inf)
    (sure,) = parts.sure().values()
    assert sure.energy <= paid
    if os.environ.get("HWMODEL_TESTS") == "thorough":
        assert bound(problem, chip, chosen, 20).energy <= paid


@drawn(300)
@given(cases(), st.data())
def test_no_mapping_costs_less_than_the_least_of_sizes_around_its_own(case, data):
    """Sizes that are looked at part by part: some are bounded on both sides, and how often some go
    into others.
    """
    problem, chip, chosen, mapping = case
    apart = problem.groups > 1 and chip.array is not None
    space = Space(problem, chip, chosen)
    former = Former(space, mapping.held, Tables(space.axes), apart)
    sizes, box, energies = sizes_of(space, mapping), {}, Energies([former])
    (whole,) = energies.points({})
    for loop, n in problem.extent._asdict().items():
        least, most = 1, n  # of sizes further out; none is below those further in
        own = {former.key(loop, at) for at in range(space.columns[loop].chosen)}
        for key in sorted((key for key in own if key[1] >= 0), key=former.outside):
            if data.draw(st.booleans()):
                most = data.draw(st.integers(sizes[key], most))
            box[key] = least, most
        for key in sorted((key for key in own if key[1] >= 0), key=former.outside, reverse=True):
            if data.draw(st.booleans()):
                least = data.draw(st.integers(least, sizes[key]))
            box[key] = least, box[key][1]
        own = [(loop, WHOLE), *sorted((key for key in own if key[1] >= 0), key=former.outside)]
        for outer, key in combinations(own, 2):
            if key in whole.at and data.draw(st.booleans()):
                often = -(-sizes.get(outer, n) // sizes[key])
                few = data.draw(st.sampled_from((1, often, data.draw(st.integers(1, often)))))
                many = data.draw(st.sampled_from((often, often + 1, np.inf)))
                box[Times(key, outer)] = few, many
    (point,) = energies.points(box, whole.at if data.draw(st.booleans()) else {})
    assert point.relaxed.energy <= energy(problem, mapping, chip, chosen) * (1 + 1e-9) + 1e-9


def lies_in(box, sizes, extent):
    """Whether a mapping lies in a box: all sizes, and how often one goes into another."""
    for name, (few, many) in box.items():
        if isinstance(name, Times):
            outer = sizes.get(name.outer, getattr(extent, name.key[0]))
            value = -(-outer // sizes[name.key])
        else:
            value = sizes[name]
        if not few <= value <= many:
            return False
    return True


@drawn(200)
@given(cases())
def test_a_mapping_lies_in_one_part_of_every_cut_and_costs_no_less(case):
    """Followed from cut to cut down to where nothing is gained; small gains are looked at, too."""
    problem, chip, chosen, mapping = case
    apart = problem.groups > 1 and chip.array is not None
    space = Space(problem, chip, chosen)
    former = Former(space, mapping.held, Tables(space.axes), apart)
    sizes, energies, box = sizes_of(space, mapping), Energies([former]), {}
    paid = energy(problem, mapping, chip, chosen) * (1 + 1e-9) + 1e-9
    (point,) = energies.points({})
    with pytest.MonkeyPatch.context() as patch:
        for name in ("WORTH", "LITTLE"):
            patch.setattr(cuts, name, 1e-9)
        for _ in range(12):
            assert point.relaxed.energy <= paid
            parts = cuts.sides(former, box, point)
            if not parts or not point.at:
                break
            (box,) = (one for one in parts if lies_in(one, sizes, problem.extent))
            (point,) = energies.points(box, point.at)


def padded_nest(rng):
    """One short axis in which some outputs miss some taps, on a chip for its mapping; or None."""
    step, dilation, spread = rng.choice(((1, 1, 1), (1, 1, 1), (2, 1, 1), (1, 2, 1), (1, 1, 2),
                                         (1, 1, 3), (1, 2, 2), (1, 3, 1)))  # fmt: skip
    window = Window(rng.randint(1, 8), step, dilation, rng.randint(0, 3), 0, spread)
    n = Extents(1, 1, rng.choice((1, 1, 1, 2, 3)), rng.randint(2, 7), 1, rng.randint(2, 4), 1)
    if products(window, PADDED.rule, n.HO, n.HF) in (0, n.HO * n.HF):
        return None
    unions, tiles, levels, above = [], [], [MemoryLevel("L0", (free("IFO"),))], n
    for _ in range(rng.choice((1, 2, 2))):
        unions.append(Extents(*(rng.randint(1, x) for x in above)))
        whole = rng.random() < 0.3
        above = unions[-1] if whole else Extents(*(rng.randint(1, x) for x in unions[-1]))
        tiles.append(above)
        fanout = prod(pieces(unions[-1], above).values())
        merges = (rng.random() < 0.7, rng.random() < 0.7) if fanout > 1 else (True, True)
        holds = rng.choice(("IFO", "IFO", "IFO", "I", "FO"))
        levels.append(MemoryLevel("L", (free(holds),), fanout, None, *merges))
    cycle = Extents(*(rng.choice((1, 1, x)) for x in above))
    bounds = tuple(Bound((x,), getattr(cycle, x)) for x in LOOPS)
    chip = Memories(tuple(levels), Array(bounds, rng.choice(("none", "I", "F", "O"))), 1.0)
    held = tuple(rng.choice("IFO") for _ in tiles)
    problem = Problem(n, window, Window(1), Widths(8, 8, 8))
    return problem, chip, Mapping(tuple(tiles), held, tuple(unions), cycle)


def free(holds):
    return Memory("memory", tuple(holds), None, 1.0, 1.0)


PADDED = SearchOptions("optimal", "best", "exact", "touched", "skipped", 8, transfers="both")


@pytest.mark.parametrize("seed", [2, 3])
def test_counts_of_short_padded_axes(seed):
    """Ragged pieces, zeros between rows, sums that stay: where cycles may meet nothing."""
    rng, looked = Random(seed), 0
    while looked < examples(5000):
        if (nest := padded_nest(rng)) is None:
            continue
        problem, chip, mapping = nest
        space, looked = Space(problem, chip, PADDED), looked + 1
        former = Former(space, mapping.held, Tables(space.axes), apart=False)
        sizes, there = sizes_of(space, mapping), Nest(problem, mapping, chip, PADDED.rule)
        for plan in terms(problem, chip, mapping.held, PADDED):
            if plan.operand != "I":
                for cut in (False, True):
                    least = np.exp(at_sizes(former, former.count(plan), sizes, cut=cut))
                    assert least <= there.counted(plan).elements * (1 + 1e-6)
