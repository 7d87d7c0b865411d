"""Mappings to begin with: the smallest tiles, those of a bound, and such as lie side by side."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from hwmodel.tiling.spatial.bound import Bound
from hwmodel.tiling.spatial.descent import Held, Point
from hwmodel.tiling.spatial.space import GROUPS, Space
from hwmodel.work.problem import Extents

__all__ = ["seeds", "smallest", "spread"]


def seeds(held: Held, least: Bound) -> Iterator[Point]:
    """The smallest tiles, and the tiles of the bound as far as they fit together."""
    space = held.space
    yield smallest(space)
    ones = Extents(*(1,) * len(Extents._fields))
    above = space.problem.extent
    unions, tiles = [], []
    for level, union in enumerate(least.above.tiles, 1):
        inside = least.inside.get(level)
        tile = inside.tiles[0] if inside else union
        union = Extents(*map(min, union, above))
        tile = Extents(*map(min, tile, union))
        unions.append(union)
        tiles.append(tile)
        above = tile
    for depth in range(len(tiles), -1, -1):
        rest = len(tiles) - depth
        point = _point(space, [*unions[:depth], *[ones] * rest], [*tiles[:depth], *[ones] * rest])
        yield spread(held, point)


def smallest(space: Space) -> Point:
    """Tiles of one element."""
    return tuple(tuple((1,) * space.columns[x].chosen for x in loops) for loops in GROUPS)


def _point(space: Space, unions: list[Extents], tiles: list[Extents]) -> Point:
    axes = []
    for loops in GROUPS:
        axis = []
        for loop in loops:
            sizes = [getattr(x, loop) for pair in zip(unions, tiles, strict=True) for x in pair]
            sizes.append(1)
            columns, chosen = space.columns[loop], {}
            for place, at in enumerate(columns.follows):
                chosen[at] = sizes[place]  # where both follow one, the tile
            axis.append(tuple(chosen[at] for at in range(columns.chosen)))
        axes.append(tuple(axis))
    return tuple(axes)


def spread(held: Held, point: Point) -> Point:
    """Bring union tiles back to what instances can hold side by side, halving the widest."""
    space = held.space
    for limit in space.limits:
        if limit.inner is None:
            continue
        sizes = {x: list(c) for loops, axis in zip(GROUPS, point, strict=True)
                 for x, c in zip(loops, axis, strict=True)}  # fmt: skip
        places = {
            x: (space.columns[x].follows[limit.outer], space.columns[x].follows[limit.inner])
            for x in limit.bound.loops
        }
        while True:
            pieces = {x: -(-sizes[x][u] // sizes[x][t]) for x, (u, t) in places.items()}
            if prod(pieces.values()) <= limit.bound.most:
                break
            widest = max(pieces, key=lambda x: pieces[x])
            union, tile = places[widest]
            sizes[widest][union] = sizes[widest][tile] * -(-pieces[widest] // 2)
        point = tuple(tuple(tuple(sizes[x]) for x in loops) for loops in GROUPS)
    return point
