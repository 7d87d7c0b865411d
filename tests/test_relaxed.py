"""Lower bounds under sizes that need not be whole, and the counts of rows that they rest on."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwmodel.tiling.rows import RowRule, block_rows, most_rows, products
from hwmodel.tiling.spatial.interior import Programme, solved
from hwmodel.tiling.spatial.minorants import loaded, needed
from hwmodel.tiling.spatial.paths import Axis, Step, rows
from hwmodel.tiling.spatial.piece_rows import CutRows
from hwmodel.work.problem import Window
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


def box(volume):
    """Walls and floor of a box of a volume: w h + w d + h d, its sides from 1 to 100."""
    most = np.log(100)
    A = np.array([[1, 1, 0], [1, 0, 1], [0, 1, 1]], float)
    G = np.vstack([-np.eye(3), np.eye(3), -np.ones(3)])
    h = np.array([0, 0, 0, most, most, most, -np.log(volume)])
    return Programme(A, np.zeros(3), G, h, (), np.zeros(3), np.full(3, most))


@pytest.mark.parametrize("volume", [8.0, 1000.0, 5000.0])
def test_the_least_of_a_box_by_hand(volume):
    """A cube is the best; so the least is 3 volume^(2/3)."""
    found = solved(box(volume), np.array([2.0, 3.0, 4.0]) * np.log(volume) / 8)
    best = np.log(3 * volume ** (2 / 3))
    assert best - 1e-3 <= found.least <= best + 1e-12
    assert found.at == pytest.approx(np.log(volume) / 3, abs=1e-2)


def test_what_is_sure_does_not_rest_on_a_good_point(monkeypatch):
    """With one step of Newton's method the bound is loose, but one."""
    for steps in range(4):
        monkeypatch.setattr("hwmodel.tiling.spatial.interior.STEPS", steps)
        found = solved(box(1000.0), np.array([2.2, 2.4, 3.0]))
        assert found.least <= np.log(300)


def test_a_sum_at_most_one_by_hand():
    """The least of 1/x + 1/y where x/10 + y/10 is at most 1: x = y = 5, so 0.4."""
    tenth = np.full(2, -np.log(10))
    programme = Programme(
        -np.eye(2), np.zeros(2), np.vstack([-np.eye(2), np.eye(2)]),
        np.array([0, 0, np.log(10), np.log(10)]), ((np.eye(2), tenth),),
        np.zeros(2), np.full(2, np.log(10)),
    )  # fmt: skip
    found = solved(programme, np.array([0.1, 0.3]))
    assert np.log(0.4) - 1e-3 <= found.least <= np.log(0.4) + 1e-12
