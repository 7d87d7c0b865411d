"""Axes whose rows are touched by outputs or taps apart: what the search knows of their tiles."""

from dataclasses import replace
from importlib.util import find_spec
from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hwmodel.specs.files import load
from hwmodel.specs.hardware import Hardware
from hwmodel.tiling.optimal import best_first
from hwmodel.tiling.optimal.axis_chains import _with_rows
from hwmodel.tiling.optimal.bounds import is_uneven, largest, space
from hwmodel.tiling.optimal.budget import Budget
from hwmodel.tiling.optimal.chains import Nest, best_within
from hwmodel.tiling.optimal.loop_chains import Box
from hwmodel.tiling.optimal.nodes import orders
from hwmodel.tiling.optimal.outer_rows import nearer
from hwmodel.tiling.optimal.search import Options, optimal
from hwmodel.tiling.optimal.tables import Classes, chosen
from hwmodel.tiling.options import memories
from hwmodel.tiling.spatial.together import together
from hwmodel.views.posed import posed
from hwmodel.work.problem import Extents, Problem, Widths, Window
from tests.exhaustive import least_energy
from tests.strategies import chip, chips, examples
from tests.test_optimal import as_asked, ways

__all__ = ["as_asked"]


@st.composite
def uneven(draw, longest=7):
    """A problem of which one axis, or both, has rows that are touched apart."""
    axes = []
    for _ in range(2):
        outs, taps = draw(st.integers(1, longest)), draw(st.integers(1, 4))
        if draw(st.booleans()):
            outs, taps = taps, outs
        step, dilation = draw(st.sampled_from(((1, 2), (1, 3), (2, 3), (3, 2), (3, 1), (4, 1))))
        reach = (outs - 1) * step + (taps - 1) * dilation + 1
        pad = draw(st.integers(0, 2))
        axes.append((Window(max(1, reach - 2 * pad), step, dilation, pad, pad), outs, taps))
    if draw(st.integers(0, 3)) == 0:
        axes[1] = axes[0]
    (height, HO, HF), (width, WO, WF) = axes
    extent = Extents(*(draw(st.integers(1, 4)) for _ in range(3)), HO, WO, HF, WF)
    bits = draw(st.builds(Widths, *[st.sampled_from((1, 4, 8))] * 3))
    return Problem(extent, height, width, bits)


def touched(window, outs, taps):
    """The rows that some outputs read through some taps, by walking them."""
    rows = set()
    for out, tap in product(outs, taps):
        row, rest = divmod(out * window.step + tap * window.dilation - window.pad, window.spread)
        if not rest and 0 <= row < window.size:
            rows.add(row)
    return len(rows)


def away(window):
    """The same far from all borders."""
    return window._replace(size=10**6, pad=0, pad_end=0)


def pieces(length, tile):
    return [range(i, min(i + tile, length)) for i in range(0, length, tile)]


def prepared(problem, hardware, options):
    given = options.rule, options.ofmap_space, options.transfers, options.limit, Budget(10**9)
    return space(problem, hardware, options.partial_sum_bits, *given)


def size_of(problem, tile):
    """Room of a tile of I and F [bit]; rows away from all borders, at most those of the whole."""
    n = problem.extent
    axes = (problem.height, n.HO, n.HF, 3, 5), (problem.width, n.WO, n.WF, 4, 6)
    room = [
        min(touched(away(w), range(tile[d]), range(tile[e])), touched(w, range(i), range(k)))
        for w, i, k, d, e in axes
    ]
    N, M, C, *_, HF, WF = tile
    return problem.bits.I * N * C * room[0] * room[1] + problem.bits.F * M * C * HF * WF


@settings(max_examples=examples(1000, 3), deadline=None)
@given(st.data(), uneven(24), st.sampled_from((-1, 0, 1)))
def test_rows_of_a_class_are_those_of_its_best_tile_that_fits(data, problem, more):
    """Every tile of the classes of an axis walked, beside the smallest tiles of all else.

    The memory has room for one of these tiles to the bit, or one bit less or more.
    """
    classes = Classes(prepared(problem, chip((10**9,), [(9.0, 9.0), (1.0, 1.0)]), Options()))
    place = tuple(data.draw(st.integers(0, len(some) - 1)) for some in classes.smallest)
    low = [int(some[i]) for some, i in zip(classes.smallest, place, strict=True)]
    axis = data.draw(st.sampled_from(((3, 5), (4, 6))))
    tile = [*low]
    for d in axis:
        tile[d] = data.draw(st.integers(low[d], int(classes.longest[d][place[d]])))
    bits = max(1, size_of(problem, tile) + more)
    made = prepared(problem, chip((bits,), [(9.0, 9.0), (1.0, 1.0)]), Options())
    classes = Classes(made)
    (order,) = orders(made, [("F",)])
    own = chosen(classes, classes.whole, order.levels[0], place)
    found = nearer(classes, order.levels[0], own)
    n = problem.extent
    axes = (problem.height, n.HO, n.HF, 3, 5), (problem.width, n.WO, n.WF, 4, 6)
    for (window, outs, taps, o, t), field in zip(axes, ("rows", "columns"), strict=True):
        if not is_uneven(window, outs, taps):
            continue
        some = []
        ranges = (range(low[d], int(classes.longest[d][place[d]]) + 1) for d in (o, t))
        for out, tap in product(*ranges):
            tile = [*low]
            tile[o], tile[t] = out, tap
            if size_of(problem, tile) <= bits:
                cut = product(pieces(outs, out), pieces(taps, tap))
                some.append(sum(touched(window, a, b) for a, b in cut))
        if not some:
            assert found is None
            return
        if found is not None:
            assert getattr(found, field) == max(min(some), getattr(own, field))


@settings(max_examples=examples(300, 3), deadline=None)
@given(st.data(), uneven(), st.integers(100, 4000))
def test_tilings_of_a_nest_are_the_same_whatever_may_cost_too_much(data, problem, bits):
    """The cheapest of all tilings of a nest, found again among those that cost no more than it."""
    capacities = (bits, max(60, bits // 3))
    made = prepared(problem, chip(capacities, [(20.0, 20.0), (5.0, 5.0), (1.0, 1.0)]), Options())
    classes = Classes(made)
    places = [[data.draw(st.integers(0, len(x) - 1)) for x in classes.smallest]]
    places.append(
        [
            data.draw(st.integers(i, len(x) - 1))
            for i, x in zip(places[0], classes.smallest, strict=True)
        ]
    )
    least = [[int(x[i]) for i, x in zip(one, classes.smallest, strict=True)] for one in places]
    ends = [largest(n, x) for n, x in zip(problem.extent, classes.smallest, strict=True)]
    high = [[int(x[i]) for i, x in zip(one, ends, strict=True)] for one in places]
    fewest = [[-(-n // t) for n, t in zip(problem.extent, one, strict=True)] for one in high]
    nest = Nest(
        *(np.array(x, np.int64) for x in (places, least, high, fewest, [problem.extent] * 2))
    )
    held = data.draw(st.sampled_from("FIO")), data.draw(st.sampled_from("FIO"))
    whole = best_within(made, held, nest)
    if whole.mapping is None:
        return
    for reach in (whole.energy, whole.energy * 1.1, whole.energy * 10):
        again = best_within(made, held, nest, reach)
        assert again.energy == whole.energy
    cheaper = best_within(made, held, nest, whole.energy * (1 - 1e-6))
    assert cheaper.energy >= whole.energy


@ways
@settings(max_examples=examples(300, 4), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data(), uneven(), st.sampled_from((1, 5)), st.sampled_from((1, 20, 1000)))
def test_the_optimum_of_uneven_axes_is_that_of_every_chain(
    as_asked, compiled, data, problem, few, work
):
    """Chains step by step, however few are listed at once, and lists that end early.

    Half of the memories have room for some tile to the bit.
    """
    as_asked(compiled)
    extent = problem.extent._replace(N=1, C=min(problem.extent.C, 2), M=min(problem.extent.M, 2))
    problem, hardware = replace(problem, extent=extent), data.draw(chips(3))
    if data.draw(st.booleans()):
        tiles = [[data.draw(st.integers(1, n)) for n in extent]]
        tiles.append([data.draw(st.integers(1, n)) for n in tiles[0]])
        sizes = tuple(size_of(problem, tile) for tile in tiles)
        hardware = chip(sizes, [(20.0, 20.0), (5.0, 6.0), (1.0, 1.0)])
    options = Options(
        stationary=data.draw(st.sampled_from(("filter", "best"))),
        transfers=data.draw(st.sampled_from(("upper", "both"))),
    )
    judged = least_energy(problem, hardware, options)
    if judged is None:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hwmodel.tiling.optimal.axis_chains.FEW_CHAINS", few)
        patch.setattr(best_first, "MOST_WORK", work)
        patch.setattr(best_first, "FEW", work)
        _, certificate = optimal(problem, hardware, options)
    assert certificate.lower_bound <= judged[0] * (1 + 1e-12)
    assert certificate.energy >= judged[0] * (1 - 1e-12)
    if work > 20:
        assert certificate.proved
    if certificate.proved:
        assert certificate.energy == pytest.approx(judged[0], rel=1e-12)


@ways
def test_lists_that_end_for_their_work_go_on_with_more(as_asked, compiled, monkeypatch):
    """A walk of few steps ends below what is listed already; it must not come to less and less."""
    as_asked(compiled)
    monkeypatch.setattr(best_first, "MOST_WORK", 1)
    problem = posed("N=6,M=24,C=20,H=9,W=9,K=3,pad=1", "8,8,8", "forward").apart
    hardware = memories(load(Hardware, "ascend"))
    _, certificate = optimal(problem, hardware, Options(stationary="best"))
    monkeypatch.undo()
    as_asked(compiled)
    _, known = optimal(problem, hardware, Options(stationary="best"))
    assert known.proved and certificate.proved and certificate.energy == known.energy


@pytest.mark.skipif(not find_spec("numba"), reason="an extra")
@pytest.mark.parametrize(
    ("hardware", "case", "batch"),
    [
        ("ascend", "M=256,C=2048,H=64,W=128,K=3,dilation=12,pad=12", 16),
        ("v100", "M=256,C=2048,H=65,W=65,K=3,dilation=12,pad=12", 256),
    ],
)
def test_dilated_layers_of_deeplab_are_proved(hardware, case, batch):
    """They ended with gaps of 2.3 and 0.4 %; the rules of the search, its budget among them."""
    phase = "forward" if hardware == "ascend" else "backward-weight"
    problem = posed(f"N={batch},{case}", "32,32,32", phase).problem
    chip = memories(load(Hardware, hardware))
    _, certificate = optimal(problem, chip, Options(stationary="best"), together)
    assert certificate.proved


def test_lists_of_outputs_and_of_taps_are_remembered_apart():
    """Six outputs three rows apart under six taps two rows apart: alike but for their rows."""
    window = Window(26, 3, 2)
    problem = Problem(Extents(1, 1, 1, 6, 1, 6, 1), window, Window(1), Widths(8, 8, 8))
    made = prepared(problem, chip((10**6,), [(9.0, 9.0), (1.0, 1.0)]), Options())
    cut = Box(6, *(np.array([number]) for number in (2, 5, 2, 6)))
    whole = Box(6, *(np.array([number]) for number in (6, 6, 1, 1)))
    for boxes in ((cut, whole), (whole, cut)):
        known = np.zeros((1, 0), np.int64)
        given = made, (window, made.height, 26), boxes, 100, known, [np.arange(2, 6)]
        found = _with_rows(*given)
        for (tile,), (rows,) in zip(found.tiles, found.loaded, strict=True):
            own, other = pieces(6, tile), [range(6)]
            pairs = product(own, other) if boxes[0] is cut else product(other, own)
            assert rows == sum(touched(window, outs, taps) for outs, taps in pairs)
