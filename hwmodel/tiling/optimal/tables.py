"""What is known of the tiles of a level when those of the levels above are of given classes.

Tiles are no larger than the ones above, and a tile that does not divide the one above it makes
more pieces than its length needs.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwmodel.tiling.accesses import Mapping
from hwmodel.tiling.optimal.bounds import Axis, Level, Space, largest
from hwmodel.tiling.optimal.compiled import is_compiled, kernel
from hwmodel.work.problem import Extents, Operand

__all__ = ["Chosen", "Classes", "Tables", "below", "chosen", "raised", "smallest_tiles"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
NOWHERE = np.zeros(7, np.int64)  # the first class of every loop


class Classes:
    """The classes of all loops of a space, as flat arrays and as tables of both axes."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.extent = np.array(space.problem.extent, float)
        height, width = space.height, space.width
        smallest = space.N, space.M, space.C, height.outs, width.outs, height.taps, width.taps
        self.smallest: tuple[Ints, ...] = tuple(np.asarray(x, np.int64) for x in smallest)
        self.tiles = tuple(x.astype(float) for x in self.smallest)
        self.ends = np.cumsum([0, *map(len, smallest)])
        self.parts = [slice(a, b) for a, b in pairwise(self.ends.tolist())]
        self.loop = np.repeat(np.arange(7), [len(x) for x in smallest])
        lengths = [int(x) for x in space.problem.extent]
        self.high = np.concatenate(
            [largest(n, x) for n, x in zip(lengths, self.smallest, strict=True)]
        ).astype(float)
        self.longest = [self.high[part] for part in self.parts]
        self.length = self.extent[self.loop]
        self.direct = np.ceil(self.length / self.high)  # pieces at least
        bits = space.problem.bits
        self.bits = np.array([bits.I, bits.F, space.sum_bits], float)
        self.pairs: dict[tuple[int, ...], Any] = {}  # of `outer_rows`

    @cached_property
    def flat(self) -> tuple[object, ...]:
        """What the compiled bounds of many nodes take; see `kernels.children`."""
        tiles = np.concatenate(self.tiles)
        return tiles, self.high, self.direct, self.ends, self.extent, self.bits

    @cached_property
    def arrays(self) -> tuple[object, ...]:
        """Into which the compiled walks write; see `kernels.walk`."""
        most = len(self.smallest[2]) * len(self.smallest[5]) * len(self.smallest[6])
        choices = np.empty(most), np.empty(most, np.int64), np.empty((4, most))
        return *choices, np.empty(1), np.empty((1, 7), np.int64)

    @cached_property
    def axes(self) -> tuple[Floats, Floats]:
        """Of both axes: room, rows, and of any class from one on, the least rows and best ratio."""
        space = self.space
        return _axis_tables(space.height), _axis_tables(space.width)

    @cached_property
    def whole(self) -> Tables:
        """Of every level, whatever lies above."""
        rows, columns = self.axes[0][2][0].min(), self.axes[1][2][0].min()
        return self.tables(self.direct, NOWHERE, np.array([rows, columns]))

    def tables(self, pieces: Floats, first: Ints, rows: Floats) -> Tables:
        """Tables of a level, with the pieces of all classes one loop after the other."""
        return Tables(tuple(pieces[part] for part in self.parts), pieces, first, rows)


class Tables(NamedTuple):
    """Of a level below given ones: what its classes are at least."""

    pieces: tuple[Floats, ...]  # of each loop, by its classes
    flat: Floats  # the same, one loop after the other
    first: Ints  # class [7]; tiles are no larger than its
    rows: Floats  # and columns of I


class Chosen(NamedTuple):
    """The class of every loop at one level, and what that says of its tile."""

    place: tuple[int, ...]  # of the class
    pieces: tuple[float, ...]  # at least
    low: tuple[float, ...]  # smallest tile
    high: tuple[float, ...]  # largest one that fits
    rows: float  # at least
    columns: float


def chosen(classes: Classes, tables: Tables, level: Level, place: tuple[int, ...]) -> Chosen:
    """What the classes at `place` say of a tile of a level under those of `tables`."""
    low = tuple(tiles[i] for tiles, i in zip(classes.tiles, place, strict=True))
    high = [float(tiles[i]) for tiles, i in zip(classes.longest, place, strict=True)]
    axes = classes.axes
    h, w = (place[3], place[5]), (place[4], place[6])
    n, m, c, ho, wo, hf, wf = map(float, low)
    bits = classes.bits.tolist()
    stored = float(axes[0][0, *h]) * float(axes[1][0, *w])
    sizes = bits[0] * n * c * stored, bits[1] * m * c * hf * wf, bits[2] * n * m * ho * wo
    for room in level.rooms:
        taken = [size * there for size, there in zip(sizes, room[1:], strict=True)]
        free = room.capacity - sum(taken)
        # What a tile takes is proportional to N, M and C.
        for d, share in enumerate((taken[0] + taken[2], taken[1] + taken[2], taken[0] + taken[1])):
            if share > 0:
                high[d] = min(high[d], float(int(low[d] * (1 + free / share) * (1 + 1e-12))))
    return Chosen(
        place=place,
        pieces=tuple(float(pieces[i]) for pieces, i in zip(tables.pieces, place, strict=True)),
        low=low,
        high=tuple(high),
        rows=max(float(axes[0][1, *h]), float(tables.rows[0])),
        columns=max(float(axes[1][1, *w]), float(tables.rows[1])),
    )


def raised(classes: Classes, own: Chosen, above: tuple[Chosen, ...]) -> tuple[float, ...]:
    """The pieces of chosen classes at least, of which the largest tiles may not fit."""
    pieces = []
    for d, (least, high) in enumerate(zip(own.pieces, own.high, strict=True)):
        if above and high < classes.longest[d][own.place[d]]:
            length, first = float(classes.extent[d]), above[0]
            least = max(least, _nested_one(length, first, first.pieces[d] - 1, d, high))
            if len(above) > 1:
                rest = max(above[1].pieces[d] - first.pieces[d], 0)
                least = max(least, _nested_one(length, above[1], rest, d, high))
        pieces.append(least)
    return tuple(pieces)


def _nested_one(length: float, one: Chosen, full: float, d: int, tile: float) -> float:
    """`_nested` for one loop and one largest tile."""
    most = min(one.high[d], length // full) if full > 0 else one.high[d]
    if full <= 0 or most // tile * tile >= one.low[d]:
        return -(-length // tile)
    return full * -(-most // tile) + -(-max(length - full * most, 0) // tile)


def below(classes: Classes, levels: tuple[Chosen, ...]) -> Tables:
    """What is known of a level below tiles of given classes, the outermost first.

    With a tile t of the first level in [low, high], q - 1 of its q pieces are whole: a lower tile h
    makes (q - 1) ceil(t / h) + ceil((D - (q - 1) t) / h) pieces of a loop of length D, or more. If
    some t is a multiple of h, that is ceil(D / h); else it is least for the largest t. At the
    second level each piece of the first leaves one rest at most, so the others are whole.
    From the third on only what the levels above say is known.
    """
    last = levels[-1]
    first, least = np.array(levels[0].pieces), np.array(last.pieces)
    pieces = classes.direct.copy()
    _nested(classes, levels[0], first - 1, least, pieces)
    if len(levels) > 1:
        whole = np.maximum(np.array(levels[1].pieces) - first, 0)
        _nested(classes, levels[1], whole, least, pieces)
    at_least = np.array([last.rows, last.columns])
    return classes.tables(pieces, np.array(last.place), at_least)


def _nested(classes: Classes, one: Chosen, whole: Floats, least: Floats, pieces: Floats) -> None:
    """Raise `pieces` of every class, if `whole` pieces are whole tiles of the classes of `one`."""
    low, high = np.array(one.low), np.array(one.high)
    if is_compiled():
        of = classes.extent, low, high, whole, least, classes.high, classes.ends
        kernel("nested")(*of, NOWHERE, pieces)
        return
    tile, loop = classes.high, classes.loop
    with np.errstate(divide="ignore"):
        most = np.minimum(high, np.where(whole > 0, np.floor(classes.extent / whole), np.inf))
    rest = np.maximum(classes.extent - whole * most, 0)[loop]
    most, full = most[loop], whole[loop]
    apart = (full > 0) & (np.floor(most / tile) * tile < low[loop])  # no tile is a multiple
    raised = np.where(apart, full * np.ceil(most / tile) + np.ceil(rest / tile), least[loop])
    np.maximum(pieces, np.maximum(raised, least[loop]), out=pieces)


def _axis_tables(axis: Axis) -> Floats:
    room = axis.room.astype(float)
    with np.errstate(divide="ignore"):
        ratio = axis.outs[:, None] / room
    least = np.minimum.accumulate(axis.rows[::-1].astype(float), axis=0)[::-1]
    best = np.maximum.accumulate(ratio[::-1], axis=0)[::-1]
    return np.stack([room, axis.rows, least, best])


def smallest_tiles(classes: Classes, held: tuple[Operand, ...], nest: Any) -> Mapping:
    """The smallest tiles of the classes of a nest [levels, 7]: they fit, and may waste pieces."""
    tiles = [
        Extents(*(int(tiles[i]) for tiles, i in zip(classes.smallest, place, strict=True)))
        for place in nest
    ]
    return Mapping(tuple(tiles), held)
