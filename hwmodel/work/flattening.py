"""Loops that are one: where windows do not overlap, several loops run over rows in step.

Where an axis has one tap, each output reads a row of its own, so that the same index tells rows of
O, rows of I and images apart: `N`, `HO` and `WO` are one loop over positions. Where it has one
output, each tap does: `C`, `HF` and `WF` are one loop over what is summed. A tile of one loop has
any number of positions, one of three loops a product of three numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Literal, get_args

from hwmodel.work.problem import LONGEST_LOOP, Extents, LoopNest, Window

__all__ = ["TOGETHER", "Loops", "Merged", "flattened", "merged", "spelled", "stands", "without"]

# Which loops are one where nothing couples them.
Loops = Literal["apart", "positions", "reduction", "flattened"]
TOGETHER = {"positions": ("N", "HO", "WO"), "reduction": ("C", "HF", "WF")}
Merged = tuple[str, tuple[tuple[str, int], ...]]  # a loop, and those that it stands for
_OF: dict[Loops, tuple[str, ...]] = {
    "apart": (),
    "positions": ("positions",),
    "reduction": ("reduction",),
    "flattened": ("positions", "reduction"),
}


def spelled(loops: Iterable[str]) -> str:
    """Write names of loops as a sentence has them.

    >>> spelled(TOGETHER["reduction"])
    'C, HF and WF'
    """
    *names, last = loops
    return f"{', '.join(names)} and {last}"


def stands(loops: Loops) -> str:
    """Say which loops stand for several.

    >>> stands("flattened")
    'N stands for N, HO and WO, C for C, HF and WF'
    """
    each = [f"{TOGETHER[one][0]} for {spelled(TOGETHER[one])}" for one in _OF[loops]]
    return ", ".join(each).replace(" for", " stands for", 1)


def without(loops: Loops, others: Collection[str]) -> Loops:
    """Take from loops that may be one those of `TOGETHER` that are named.

    >>> without("flattened", ["reduction"])
    'positions'
    """
    left = tuple(one for one in _OF[loops] if one not in others)
    return next(name for name in get_args(Loops) if _OF[name] == left)


def flattened(nest: LoopNest, loops: Loops, *, touched: bool) -> LoopNest:
    """Put loops together that nothing couples.

    An axis of the windows is put together where it has one tap or one output, and each row that is
    read is there and is read once; and as long as no loop is longer than `LONGEST_LOOP`.

    Args:
        loops: which may be one.
        touched: whether rows that no window touches are left out of counts; if not, an axis with
            any of them stays as it is.

    Source: docs/tiling.md, 'Loops that are one'.
    """
    n = nest.extent
    length = {"positions": n.N, "reduction": n.C}
    left = []
    for window, outs, taps in ((nest.height, n.HO, n.HF), (nest.width, n.WO, n.WF)):
        into = "positions" if taps == 1 else "reduction"
        longer = length[into] * max(outs, taps)
        own = into in _OF[loops] and longer <= LONGEST_LOOP
        if own and _apart(window, outs, taps, touched=touched):
            length[into] = longer
            left.append((Window(1), 1, 1))
        else:
            left.append((window, outs, taps))
    (height, HO, HF), (width, WO, WF) = left
    extent = Extents(length["positions"], n.M, length["reduction"], HO, WO, HF, WF)
    return nest._replace(extent=extent, height=height, width=width) if extent != n else nest


def _apart(window: Window, outs: int, taps: int, *, touched: bool) -> bool:
    """Whether outputs, or taps, of an axis read a row each that is there and no other reads."""
    if min(outs, taps) > 1 or window.spread > 1:
        return False
    step = window.step if taps == 1 else window.dilation
    last = max(outs, taps) - 1
    there = window.pad <= 0 and last * step - window.pad < window.size
    return there and (touched or window == Window(last + 1, window.step, window.dilation))


def merged(whole: Extents, tiled: Extents) -> list[Merged]:
    """List the loops of `tiled` that stand for several of `whole`, with these and their lengths.

    >>> merged(Extents(4, 8, 16, 7, 7, 1, 3), Extents(28, 8, 16, 1, 7, 1, 3))
    [('N', (('N', 4), ('HO', 7)))]
    """
    told: list[Merged] = []
    for first, *others in TOGETHER.values():
        gone = [loop for loop in others if getattr(whole, loop) != getattr(tiled, loop)]
        if gone:
            told.append((first, tuple((loop, getattr(whole, loop)) for loop in (first, *gone))))
    return told
