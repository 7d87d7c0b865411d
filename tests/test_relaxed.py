"""Lower bounds under sizes that need not be whole, and the counts of rows that they rest on."""

from itertools import product
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwmodel.tiling.accesses import Mapping
from hwmodel.tiling.options import Array, Bound, Memories, Memory, MemoryLevel, SearchOptions
from hwmodel.tiling.rows import RowRule, block_rows, most_rows, products
from hwmodel.tiling.spatial.counts import Tables
from hwmodel.tiling.spatial.interior import Programmes, solved
from hwmodel.tiling.spatial.links import Nest
from hwmodel.tiling.spatial.minorants import Part, loaded, needed
from hwmodel.tiling.spatial.paths import Axis, Step, rows
from hwmodel.tiling.spatial.piece_rows import CutRows, piece_rows
from hwmodel.tiling.spatial.powers import Former
from hwmodel.tiling.spatial.products import Least, Pieces, Rows
from hwmodel.tiling.spatial.space import Space
from hwmodel.tiling.spatial.terms import terms
from hwmodel.work.problem import Extents, Problem, Widths, Window
from tests.strategies import examples

FAST = settings(max_examples=examples(60), deadline=None)


@st.composite
def axes(draw):
    """Short axes of every kind that touch a row."""
    window = Window(
        draw(st.integers(1, 40)), draw(st.integers(1, 4)), draw(st.integers(1, 4)),
        pad=draw(st.integers(0, 3)), spread=draw(st.sampled_from((1, 1, 2, 3))),
    )  # fmt: skip
    rule = RowRule("touched", draw(st.sampled_from(("skipped", "counted"))))
    return Axis(window, rule, draw(st.integers(1, 14)), draw(st.integers(1, 14)))


def chains(draw, length):
    """Falling tiles of a loop."""
    tiles = []
    for _ in range(draw(st.integers(0, 3))):
        length = draw(st.integers(1, length))
        tiles.append(length)
    return tuple(tiles)


def highest(planes, outs, taps):
    return max(planes.constant + planes.slopes @ (np.log(outs), np.log(taps)))


@FAST
@given(axes(), st.data())
def test_planes_are_below_all_rows(axis, data):
    """Those that nested cuts load, and those that any tile needs."""
    if not products(axis.window, axis.rule, axis.outs, axis.taps):
        return
    least = loaded(axis)
    for _ in range(10):
        outs, taps = chains(data.draw, axis.outs), chains(data.draw, axis.taps)
        there = rows(axis, *(tuple(Step(t, True) for t in some) for some in (outs, taps)))
        last = (*(axis.outs, *outs)[-1:], *(axis.taps, *taps)[-1:])
        assert highest(least, *last) <= np.log(there) + 1e-9
    most, whole = needed(axis), int(block_rows(axis.window, axis.rule, 0, axis.outs, 0, axis.taps))
    for out in range(1, axis.outs + 1):
        for tap in range(1, axis.taps + 1):
            room = most_rows(axis.window, axis.rule, whole, out, tap)
            assert highest(most, out, tap) <= np.log(max(room, 1)) + 1e-9


@pytest.mark.parametrize(
    ("window", "outs", "taps"),
    [
        (Window(16), 14, 3),
        (Window(60, 2, 1, 1, 1), 30, 5),
        (Window(30, 1, 2, 4, 4), 30, 5),
        (Window(20, 1, 1, 2, 2, 2), 40, 4),
        (Window(9, 1, 1, 1, 1), 3, 9),
    ],
)
def test_planes_are_below_the_rows_of_every_tile_and_of_every_part(window, outs, taps):
    """Of a class the smallest tile may be chosen, for which a plane that falls is the highest."""
    axis = Axis(window, RowRule("touched", "skipped"), outs, taps)
    middle = outs // 2, taps // 2
    lower, upper = Part((1, middle[0]), (1, taps)), Part((middle[0] + 1, outs), (middle[1], taps))
    for part in (None, lower, upper):
        planes = loaded(axis, part)
        for out in range(1, outs + 1) if part is None else range(part.outs[0], part.outs[1] + 1):
            for tap in range(1, taps + 1) if part is None else range(part.taps[0], taps + 1):
                there = rows(axis, (Step(out, True),), (Step(tap, True),))
                assert highest(planes, out, tap) <= np.log(there) + 1e-9


@FAST
@given(axes(), st.data())
def test_rows_of_cuts_that_do_not_depend_on_each_other(axis, data):
    """Equal to the rows of each pair of pieces, added up."""
    step, dilation = axis.window.step, axis.window.dilation
    turned = axis.taps > axis.outs
    if dilation % step if turned else step % dilation:
        return
    cut = CutRows(axis, turned=turned)
    for _ in range(5):
        outs, taps = chains(data.draw, axis.outs), chains(data.draw, axis.taps)
        steps = (tuple(Step(t, True) for t in some) for some in (outs, taps))
        assert cut.rows([(outs, taps)]) == [rows(axis, *steps)]


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("rule", [RowRule(), RowRule("bounding", "counted")])
@pytest.mark.parametrize(
    ("window", "outs", "taps"),
    [
        (Window(40, 1, 1, 1, 1), 38, 3),
        (Window(40, 2, 1, 1, 1), 19, 4),
        (Window(40, 3, 2, 2, 2), 12, 5),  # cuts of outputs load anew what depends on those of taps
        (Window(40, 1, 2, 2, 2), 36, 4),
        (Window(12, 1, 1, 2, 2, 3), 30, 5),
        (Window(30, 2, 3, 0, 0), 4, 9),
    ],
)
def test_rows_of_nested_pieces_are_those_of_each_pair(
    window, outs, taps, rule, compiled, monkeypatch
):
    """Each pair of an innermost piece of outputs and one of taps loads its rows anew."""
    monkeypatch.setattr("hwmodel.tiling.optimal.compiled._switch", [compiled])
    listed, draw = piece_rows.__wrapped__(Axis(window, rule, outs, taps)), Random(outs)
    for _ in range(20):
        chain = [sorted((draw.randint(1, n) for _ in range(2)), reverse=True) for n in (outs, taps)]
        there = sum(
            touched(window, rule, *pair) for pair in product(*map(innermost, (outs, taps), chain))
        )
        assert listed.rows_by_chain(np.array([chain[0] + chain[1]]), 2).tolist() == [there]


def innermost(length, tiles):
    """The innermost pieces of cuts, each begun anew in every piece around it."""
    pieces = [range(length)]
    for tile in tiles:
        pieces = [one[at : at + tile] for one in pieces for at in range(0, len(one), tile)]
    return pieces


def touched(window, rule, outs, taps):
    """Rows that some outputs touch through some taps, one by one."""
    at = {o * window.step + k * window.dilation - window.pad for o in outs for k in taps}
    found = {x // window.spread for x in at if x % window.spread == 0}
    if rule.padding == "skipped":
        found = {row for row in found if 0 <= row < window.size}
    return max(found) - min(found) + 1 if found and rule.rows == "bounding" else len(found)


def together(several, G, h, rooms, most):
    """Programmes of lists (A, b), sizes from 1 to e^most; rooms are lists (R, r) of each."""
    terms, sums = max(len(b) for _, b in several), max(len(r) for _, r in rooms)
    A, b = np.zeros((len(several), terms, G.shape[1])), np.full((len(several), terms), -np.inf)
    R, r = np.zeros((len(several), 1, sums, G.shape[1])), np.full((len(several), 1, sums), -np.inf)
    for i, ((own, constant), (room, size)) in enumerate(zip(several, rooms, strict=True)):
        A[i, : len(own)], b[i, : len(own)] = own, constant
        R[i, 0, : len(room)], r[i, 0, : len(room)] = room, size
    return Programmes(A, b, G[None], h[None], R, r, np.zeros(G.shape[1]), np.full(G.shape[1], most))


NO_ROOM = (np.zeros((1, 3)), np.full(1, -np.inf))


def box(volume, *times):
    """Walls and floor of a box of a volume: w h + w d + h d, its sides from 1 to 100.

    Several, of which each costs so many times as much.
    """
    most = np.log(100)
    A = np.array([[1, 1, 0], [1, 0, 1], [0, 1, 1]], float)
    G = np.vstack([-np.eye(3), np.eye(3), -np.ones(3)])
    h = np.array([0, 0, 0, most, most, most, -np.log(volume)])
    several = [(A, np.full(3, np.log(n))) for n in times or (1,)]
    return together(several, G, h, [NO_ROOM] * len(several), most)


@pytest.mark.parametrize("volume", [8.0, 1000.0, 5000.0])
def test_the_least_of_a_box_by_hand(volume):
    """A cube is the best; so the least is 3 volume^(2/3)."""
    found = solved(box(volume), np.array([2.0, 3.0, 4.0]) * np.log(volume) / 8, np.zeros(1))
    best = np.log(3 * volume ** (2 / 3))
    assert best - 1e-3 <= found.least[0] <= best + 1e-12
    assert found.at[0] == pytest.approx(np.log(volume) / 3, abs=1e-2)


def test_boxes_together_are_those_alone():
    """The cheapest is followed to the end; those that are far dearer, as far as is of use.

    What is paid beside turns round which is the cheapest.
    """
    start = np.array([2.0, 3.0, 4.0]) * np.log(1000) / 8
    for beside, cheapest in ((np.zeros(3), 1), (np.array([0.0, 3000.0, 2000.0]), 0)):
        found = solved(box(1000.0, 2, 1, 40), start, beside)
        best = np.log(300 * np.array([2, 1, 40]))
        assert (found.least <= best + 1e-12).all() and (found.least >= best - 2).all()
        assert found.least[cheapest] >= best[cheapest] - 1e-3
        assert (np.exp(found.least) + beside).argmin() == cheapest


def test_what_is_sure_does_not_rest_on_a_good_point(monkeypatch):
    """With one step of Newton's method the bound is loose, but one."""
    for steps in range(4):
        monkeypatch.setattr("hwmodel.tiling.spatial.interior.STEPS", steps)
        found = solved(box(1000.0), np.array([2.2, 2.4, 3.0]), np.zeros(1))
        assert found.least[0] <= np.log(300)


def test_a_sum_at_most_one_by_hand():
    """The least of 1/x + 1/y where x/10 + y/10 is at most 1: x = y = 5, so 0.4.

    Beside it one whose sum has a single term, x/10: then y ends at 10 only, and so 0.2 is the least.
    """
    tenth, most = np.full(2, -np.log(10)), np.log(10)
    G, h = np.vstack([-np.eye(2), np.eye(2)]), np.array([0, 0, most, most])
    rooms = [(np.eye(2), tenth), (np.eye(2)[:1], tenth[:1])]
    own = (-np.eye(2), np.zeros(2))
    found = solved(together([own, own], G, h, rooms, most), np.array([0.1, 0.3]), np.zeros(2))
    assert np.log(0.2) - 1e-3 <= found.least[1] <= np.log(0.2) + 1e-12
    found = solved(together([own], G, h, rooms[:1], most), np.array([0.1, 0.3]), np.zeros(1))
    assert np.log(0.4) - 1e-3 <= found.least[0] <= np.log(0.4) + 1e-12


def test_planes_are_below_the_rows_of_long_axes(monkeypatch):
    """Where only some tiles are looked at, each stands for all up to the next."""
    monkeypatch.setattr("hwmodel.tiling.spatial.minorants.LISTED", 6)
    monkeypatch.setattr("hwmodel.tiling.spatial.minorants.CLOSE", 0.2)
    rule = RowRule("touched", "skipped")
    for window, outs, taps in (
        (Window(90, 1, 1, 0, 0), 90, 1), (Window(200, 2, 1, 1, 1), 90, 3),
        (Window(90, 1, 3, 3, 3), 90, 3), (Window(40, 1, 1, 1, 1, 2), 80, 4),
    ):  # fmt: skip
        axis = Axis(window, rule, outs, taps)
        most, whole = needed(axis), int(block_rows(window, rule, 0, outs, 0, taps))
        for out in range(1, outs + 1):
            for tap in range(1, taps + 1):
                room = int(most_rows(window, rule, whole, out, tap))
                assert highest(most, out, tap) <= np.log(max(room, 1)) + 1e-9


def nested(draw, length, sizes, spreads):
    """Falling sizes of a loop: union tile and tile of each boundary, then a cycle's."""
    found = []
    for place in range(sizes):
        length = draw(st.integers(1, length)) if place % 2 == 0 or spreads else length
        found.append(length)
    return found


TWICE = Memories(
    tuple(
        MemoryLevel(name, (Memory(name, ("I", "F", "O"), None, 1.0, 1.0),), fanout, *rest)
        for name, fanout, *rest in (("DRAM", 1), ("SM", 6, None, False, False), ("RF", 4))
    ),
    Array((Bound(("HO", "C"), 3),), cycle_energy=1.0), 1.0,
)  # fmt: skip
ASKED = SearchOptions("optimal", "best", "exact", "touched", "skipped", 16)


def pieces_of(former, key, sizes):
    """The pieces that a chain of tiles cuts a loop into, down to one of its sizes, one by one."""
    lengths = [getattr(former.space.problem.extent, key[0])]
    own = sorted((x for x in sizes if x[0] == key[0]), key=former.outside)
    for tile in (sizes[x] for x in own[: own.index(key) + 1]):
        lengths = [min(tile, n - at) for n in lengths for at in range(0, n, tile)]
    return len(lengths)


def at_sizes(former, one, sizes, *, cut=False):
    """The logarithm of a product at whole sizes; its variables as low as they may be.

    Args:
        cut: whether pieces are as many as there are, which is the most that a part may say.
    """
    total = one.constant
    for name, factor in one.factors:
        if isinstance(name, Least):
            value = max(at_sizes(former, each, sizes, cut=cut) for each in name.products)
        elif isinstance(name, Rows):
            ends = [np.exp(at_sizes(former, former.of(x), sizes)) for x in (name.outs, name.taps)]
            value = highest(former.tables.planes(name.which, name.kind), *ends)
        elif isinstance(name, Pieces):
            length = getattr(former.space.problem.extent, name.key[0])
            value = np.log(length / sizes[name.key])
            if cut:
                value = np.log(pieces_of(former, name.key, sizes))
        else:
            value = np.log(sizes[name])
        total += factor * value
    return total


def side_by_side(draw, space):
    """Sizes of all loops, of which no more pieces lie side by side than may."""
    n, most = space.problem.extent, {"HO": 3, "C": 3}
    chains = {x: nested(draw, getattr(n, x), 5, draw(st.booleans())) for x in n._fields}
    for x, chain in chains.items():
        chain[4] = min(chain[4], most.get(x, 1))
    for limit in space.limits:
        inner = {x: 1 if limit.inner is None else chains[x][limit.inner] for x in limit.bound.loops}
        pieces = [-(-chains[x][limit.outer] // tile) for x, tile in inner.items()]
        if np.prod(pieces) > limit.bound.most:  # one
            for x, tile in inner.items():
                chains[x][limit.outer] = tile
    return chains


@settings(max_examples=examples(200), deadline=None)
@given(axes(), axes(), st.data())
def test_products_of_powers_are_below_all_counts(height, width, data):
    """Two levels of memories side by side under padding, in which a cycle may meet nothing."""
    n = Extents(1, data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4)),
                height.outs, width.outs, height.taps, width.taps)  # fmt: skip
    problem = Problem(n, height.window, width.window, Widths(8, 8, 8))
    if not all(products(a.window, ASKED.rule, a.outs, a.taps) for a in (height, width)):
        return
    space = Space(problem, TWICE, ASKED)
    held = data.draw(st.tuples(*[st.sampled_from("IFO")] * 2))
    former = Former(space, held, Tables(space.axes), apart=False)
    for _ in range(5):
        chains = side_by_side(data.draw, space)
        tiles = [Extents(*(chains[x][i] for x in n._fields)) for i in range(5)]
        mapping = Mapping(tuple(tiles[1:4:2]), held, tuple(tiles[0:3:2]), tiles[4])
        nest = Nest(problem, mapping, TWICE, ASKED.rule)
        sizes = {
            (x, at): chains[x][place]
            for x in n._fields
            for place, at in enumerate(space.columns[x].follows)
            if at >= 0
        }
        for plan in terms(problem, TWICE, held, ASKED):
            counted = nest.counted(plan).elements
            assert at_sizes(former, former.count(plan), sizes) <= np.log(counted) + 1e-6
