"""Loops over chains of tiles as rows of sizes: which are new, which lie near another or near sizes.

These functions are plain Python; where the extra `compiled` is installed, numba compiles them, and
the search takes them in the place of arrays. Nothing imports this module before.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hwmodel.tiling.optimal.kernels import _compiled

__all__ = ["changed", "entered", "measured", "near"]

TURN, ROOM = 1000003, 2**40 - 1  # of codes of rows


@_compiled
def _slot(rows: Any, row: Any, slots: Any) -> Any:
    """Where a row's place is kept, or, where it is new, an empty slot for it.

    Args:
        rows: all that are kept.
        slots: their places, more than there are, a power of two; -1: empty.
    """
    code, last = 0, len(slots) - 1
    for k in range(len(row)):
        code = (code * TURN + row[k]) & ROOM
    slot = (code ^ (code >> 20)) & last
    while slots[slot] >= 0:
        other, same = rows[slots[slot]], True
        for k in range(len(row)):
            if other[k] != row[k]:
                same = False
                break
        if same:
            return slot
        slot = (slot + 1) & last
    return slot


@_compiled
def entered(rows: Any, number: Any, slots: Any, new: Any, at: Any) -> Any:
    """Write the places of rows among others, behind which new ones are kept, as `numbered`.

    Args:
        rows: those that are kept, with room for all new ones.
        number: how many are kept.
        slots: as `_slot` takes them, at least twice as many as rows.
        new: the rows that are looked for.
        at: their places, which are written.

    Returns: how many are kept now.
    """
    for i in range(len(new)):
        slot = _slot(rows, new[i], slots)
        if slots[slot] < 0:
            rows[number], slots[slot] = new[i], number
            number += 1
        at[i] = slots[slot]
    return number


@_compiled
def measured(rows: Any, places: Any, depth: Any, indexed: Any, limits: Any, most: Any) -> Any:
    """Return sizes and parts of chains of an axis, as `Space.measured`.

    Args:
        rows: chosen sizes of the loops, side by side [chain, size].
        places: among these, by loop and size; -1: it is 1.
        depth: boundaries between levels.
        indexed: whether a loop indexes an operand [operand, loop].
        limits: of each bound and loop, the places of two sizes; -1: it is 1 [bound, loop, 2]; both
            -1 where a bound is not of a loop.
        most: rows that a tile can need [outputs, taps]; nothing of an axis of one loop.
    """
    loops, wide = places.shape
    sizes = np.ones((len(rows), loops, wide), np.int64)
    operands = len(indexed)
    parts = np.ones((len(rows), operands * depth + len(limits)))
    for i in range(len(rows)):
        own, found = sizes[i], parts[i]
        for x in range(loops):
            for k in range(wide):
                if places[x, k] >= 0:
                    own[x, k] = rows[i, places[x, k]]
        for boundary in range(depth):
            for operand in range(operands):
                at = operands * boundary + operand
                if operand == 0 and len(most):
                    found[at] = most[own[0, 2 * boundary + 1], own[1, 2 * boundary + 1]]
                    continue
                for x in range(loops):
                    if indexed[operand, x]:
                        found[at] *= own[x, 2 * boundary + 1]
        for z in range(len(limits)):
            for x in range(loops):
                outer, inner = limits[z, x, 0], limits[z, x, 1]
                if outer >= 0:
                    inside = own[x, inner] if inner >= 0 else 1
                    found[operands * depth + z] *= -(-own[x, outer] // inside)
    return sizes, parts


@_compiled
def _sorted(numbers: Any) -> Any:
    """Sort a few numbers, each once, to the front; return how many there are."""
    kept = 0
    for k in range(len(numbers)):
        number, at = numbers[k], kept
        while at > 0 and numbers[at - 1] > number:
            at -= 1
        if at > 0 and numbers[at - 1] == number:
            continue
        for z in range(kept, at, -1):
            numbers[z] = numbers[z - 1]
        numbers[at] = number
        kept += 1
    return kept


@_compiled
def changed(own: Any, length: Any, candidates: Any, sizes: Any, most: Any) -> Any:
    """Return chains with one or two neighbouring sizes changed, as `neighbours._changed`.

    Behind them the same with multiples of what is inside, as `neighbours._with_multiples`.

    Args:
        candidates: tiles of the loop, and of each place's size further out [1 + place, tile]; 0
            where there are no more.
        sizes: how many are changed.
        most: after how many chains no further place is changed.
    """
    wide, tiles = len(own), candidates.shape[1]
    tried = np.empty(2 * tiles + 4, np.int64)
    room = 2 * (most + len(tried) * (len(tried) + 1) // 2 + 1)
    found, slots = np.empty((room, wide), np.int64), np.full(1 << 13, -1)
    while len(slots) < 2 * room:
        slots = np.full(2 * len(slots), -1)
    row = own.copy()
    found[0], number = own, 1
    slots[_slot(found, own, slots)] = 0
    for place in range(wide - sizes + 1):
        many = 0
        for k in range(2 * tiles + 2 * sizes):
            if k < 2 * tiles:
                tile = candidates[0 if k < tiles else 1 + place, k % tiles]
            else:
                tile = own[place + (k - 2 * tiles) % sizes] + (1 if k < 2 * tiles + sizes else -1)
            if 0 < tile <= length:
                tried[many] = tile
                many += 1
        many = _sorted(tried[:many])
        rising = tried[:many]
        for i in range(many - 1, -1, -1):
            for k in range(i, -1 if sizes == 2 else i - 1, -1):
                row[:] = own
                row[place] = rising[i]
                row[place + sizes - 1] = rising[k]
                for z in range(place):
                    row[z] = max(row[z], rising[i])
                for z in range(place + sizes, wide):
                    row[z] = min(row[z], rising[k])
                slot = _slot(found, row, slots)
                if slots[slot] < 0:
                    found[number], slots[slot] = row, number
                    number += 1
        if number >= most:
            break
    for i in range(number):
        row[:] = found[i]
        for z in range(wide - 2, -1, -1):
            if row[z] != length:
                row[z] = max(1, row[z] // row[z + 1]) * row[z + 1]
        slot = _slot(found, row, slots)
        if slots[slot] < 0:
            found[number], slots[slot] = row, number
            number += 1
    return found[:number].copy()


@_compiled
def tiles(length: Any, inner: Any, size: Any) -> Any:
    """Return whole sizes near one, as `rounded._tiles` [chain, size]."""
    found = np.empty((len(inner), 10), np.int64)
    parts = int(np.floor(length / size))
    for i in range(len(inner)):
        times, two = max(1.0, size / inner[i]), 1
        few = int(np.floor(times))
        while 2 * two <= few:
            two *= 2
        found[i, 0] = 1
        found[i, 1], found[i, 2], found[i, 3], found[i, 4] = few - 1, few, few + 1, few + 2
        found[i, 5], found[i, 6] = two, 2 * two
        for k in range(7):
            found[i, k] = min(length, inner[i] * max(1, found[i, k]))
        for k in range(3):
            found[i, 7 + k] = max(inner[i], -(-length // max(1, parts + k)))
        for k in range(1, 10):  # few enough to be sorted by moving each to its place
            tile, at = found[i, k], k
            while at > 0 and found[i, at - 1] > tile:
                found[i, at] = found[i, at - 1]
                at -= 1
            found[i, at] = tile
    return found


@_compiled
def nearest(chains: Any, tiles: Any, far: Any, most: Any) -> Any:
    """Return chains with one of their tiles outside, the nearest first, and how far they are.

    Args:
        tiles: of each chain, none smaller than the one before.
        far: how far each chain is with each of its tiles.
        most: so many are returned.
    """
    many, wide = tiles.shape
    room, number = min(most, many * wide), 0
    of, distances = np.empty(room, np.int64), np.empty(room)
    for i in range(many):
        for k in range(wide):
            distance = far[i, k]
            if k and tiles[i, k] == tiles[i, k - 1]:
                continue
            if number == room and distance >= distances[room - 1]:
                continue
            number = min(number + 1, room)
            at = number - 1
            while at > 0 and distances[at - 1] > distance:
                of[at], distances[at] = of[at - 1], distances[at - 1]
                at -= 1
            of[at], distances[at] = i * wide + k, distance
    found = np.empty((number, 1 + chains.shape[1]), np.int64)
    for z in range(number):
        i, k = of[z] // wide, of[z] % wide
        found[z, 0] = tiles[i, k]
        found[z, 1:] = chains[i]
    return found, distances[:number]


@_compiled
def near(length: Any, sizes: Any, most: Any) -> Any:
    """Return chains of a loop near sizes and how far they are, as `rounded._chains`.

    Args:
        sizes: the outermost first.
        most: so many are returned.
    """
    chains, far = np.ones((1, 1), np.int64), np.zeros(1)
    for place in range(len(sizes) - 1, -1, -1):
        size = sizes[place]
        tried = tiles(length, chains[:, 0].copy(), size)
        further = np.empty(tried.shape)
        for i in range(len(tried)):
            for k in range(tried.shape[1]):
                further[i, k] = far[i] + np.log(tried[i, k] / size) ** 2
        chains, far = nearest(chains, tried, further, most)
    return chains[:, :-1].copy(), far
