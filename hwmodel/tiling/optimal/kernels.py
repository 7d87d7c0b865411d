"""Walks the classes of tiles of one level, loop by loop, and leaves what costs too much.

The reduction is chosen first, then HO, WO and N; M comes last and in closed form. A partial choice
has a floor, and goes on only below the bound. These functions are plain Python; where the extra
`compiled` is installed, numba compiles them. Nothing imports this module before a search begins.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["chains", "children", "nested", "walk"]


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function, and keep what is compiled beside it; as it is where numba is not."""
    try:
        import numba
    except ImportError:
        return function
    compiled: Callable[..., Any] = numba.njit(cache=True)(function)
    return compiled


@_compiled
def _rest(base: Any, eA: Any, eB: Any, A: Any, B: Any, sizes: Any, rooms: Any) -> Any:
    """The least energy of all completions of a partial choice.

    With A and B pieces of filters and of ifmaps, a block takes alpha / A bits of F, beta / B bits
    of I and kappa / (A B) bits of O; eA A + eB B is least where a capacity binds.

    Args:
        base: what is paid whatever follows.
        A: blocks at least; B alike.
        sizes: alpha, beta and kappa [bit]; the most blocks there can be, of filters and of ifmaps.
        rooms: capacity [bit] and whether I, F and O lie there, a row a memory.
    """
    alpha, beta, kappa, most_A, most_B = sizes
    coupled = 0.0
    for r in range(rooms.shape[0]):
        capacity = rooms[r, 0]
        if rooms[r, 2] > 0:
            A = max(A, alpha / capacity)
        if rooms[r, 1] > 0:
            B = max(B, beta / capacity)
        if rooms[r, 1] > 0 and rooms[r, 2] > 0:
            root = np.sqrt(eA * alpha) + np.sqrt(eB * beta)
            coupled = max(coupled, root * root / capacity)
        if rooms[r, 3] > 0:
            coupled = max(coupled, 2 * np.sqrt(eA * eB * kappa / capacity))
    if most_A < A or most_B < B:
        return np.inf  # not even one filter fits, or one output
    return base + max(eA * A + eB * B, coupled)


@_compiled
def _filters(I_bits: Any, F_bits: Any, O_bits: Any, most: Any, rooms: Any) -> Any:
    """The most filters that fit beside a block of I; each takes bits of F and of O. 0: none."""
    for r in range(rooms.shape[0]):
        free = rooms[r, 0] - I_bits * rooms[r, 1]
        if free < 0:
            return 0.0
        of_one = F_bits * rooms[r, 2] + O_bits * rooms[r, 3]
        if of_one > 0:
            most = min(most, np.floor(free / of_one))
    return most


@_compiled
def _images(I_bits: Any, F_bits: Any, O_bits: Any, most: Any, rooms: Any) -> Any:
    """The most images that fit beside one filter, or a few more; each takes bits of I and of O."""
    for r in range(rooms.shape[0]):
        free = rooms[r, 0] - F_bits * rooms[r, 2]
        of_one = I_bits * rooms[r, 1] + O_bits * rooms[r, 3]
        if of_one > 0:
            most = min(most, np.floor(free / of_one * (1 + 1e-12)))
    return most


@_compiled
def _first(tiles: Any, begin: Any, most: Any) -> Any:
    """The first class from `begin` on whose smallest tile is at most `most`; tiles fall."""
    low, high = begin, len(tiles)
    while low < high:
        middle = (low + high) // 2
        if tiles[middle] <= most:
            high = middle
        else:
            low = middle + 1
    return low


@_compiled
def _reductions(level: Any, reach: Any) -> Any:
    """Classes of C, HF and WF whose floor is at most `reach`, by their floors; and work."""
    tile, piece, first, height, width, least_rows, extent, bits, rooms, w = level
    ho, wo = first[3], first[4]
    most = (len(tile[5]) - first[5]) * (len(tile[6]) - first[6]) * (len(tile[2]) - first[2])
    floors = np.empty(most)
    places = np.empty((most, 3), np.int64)
    found = work = 0
    outs = extent[0] * extent[3] * extent[4]
    B = piece[0][first[0]] * piece[3][ho] * piece[4][wo]
    A = piece[1][first[1]]
    kappa = bits[2] * extent[1] * outs
    for hf in range(first[5], len(tile[5])):
        for wf in range(first[6], len(tile[6])):
            R = max(least_rows[0], height[2][ho, hf]) * max(least_rows[1], width[2][wo, wf])
            ratio = height[3][ho, hf] * width[3][wo, wf]
            eA = w[3] + w[4] * R
            for c in range(first[2], len(tile[2])):
                own = w[0] + w[1] * piece[2][c] * piece[5][hf] * piece[6][wf] + w[5] * R
                work += 4  # as long as so many other steps
                if own > reach:
                    break  # pieces rise
                alpha = bits[1] * tile[2][c] * tile[5][hf] * tile[6][wf] * extent[1]
                beta = bits[0] * tile[2][c] / ratio * outs
                floor = _rest(own, eA, w[2], A, B, (alpha, beta, kappa, extent[1], outs), rooms)
                if floor <= reach and floor < np.inf:
                    floors[found] = floor
                    places[found, 0], places[found, 1], places[found, 2] = c, hf, wf
                    found += 1
    by = np.argsort(floors[:found], kind="mergesort")
    return floors[:found][by], places[:found][by], work


@_compiled
def walk(
    level: Any, reach: Any, only_least: Any, most_work: Any, energies: Any, classes: Any
) -> Any:
    """All classes of a level that fit and cost at most `reach`, or the cheapest of them.

    Args:
        level: smallest tiles and least pieces of the classes of each loop, the first class of
            each, tables of both axes, least rows, extents, bits, rooms and weights of a level.
        only_least: only one, the cheapest; of equals, the first.
        energies, classes: what is found is written here, in no order.
    Returns: how many were found; work, in classes; and an energy that all others exceed: `reach`
        unless there was no place, or too much work.
    """
    tile, piece, first, height, width, least_rows, extent, bits, rooms, w = level
    floors, places, work = _reductions(level, reach)
    all_outs = extent[0] * extent[3] * extent[4]
    kappa = bits[2] * extent[1] * all_outs
    A = piece[1][first[1]]
    found = 0
    for i in range(len(floors)):
        if floors[i] > reach:
            break
        if work > most_work:
            return found, work, min(reach, floors[i])
        c, hf, wf = places[i, 0], places[i, 1], places[i, 2]
        base = w[0] + w[1] * piece[2][c] * piece[5][hf] * piece[6][wf]
        F_bits = bits[1] * tile[2][c] * tile[5][hf] * tile[6][wf]
        alpha = F_bits * extent[1]
        fewest = A  # blocks of filters, however small those of ifmaps
        for r in range(rooms.shape[0]):
            if rooms[r, 2] > 0:
                fewest = max(fewest, alpha / rooms[r, 0] * (1 - 1e-12))
        for ho in range(first[3], len(tile[3])):
            rows = max(least_rows[0], height[1][ho, hf])
            R = rows * max(least_rows[1], width[2][first[4], wf])
            own = base + w[5] * R
            eA = w[3] + w[4] * R
            I_bits = bits[0] * tile[2][c] * height[0][ho, hf]
            beta = I_bits / width[3][first[4], wf] * piece[3][ho] * extent[0] * extent[4]
            B = piece[3][ho] * piece[4][first[4]] * piece[0][first[0]]
            work += 1
            if base + w[2] * B > reach:
                break  # pieces rise
            if work > most_work:
                return found, work, min(reach, floors[i])
            sizes = (alpha, beta, kappa, extent[1], all_outs)
            if _rest(own, eA, w[2], A, B, sizes, rooms) > reach:
                continue
            for wo in range(first[4], len(tile[4])):
                R = rows * max(least_rows[1], width[1][wo, wf])
                eA = w[3] + w[4] * R
                own = base + w[5] * R
                room = I_bits * width[0][wo, wf]
                B = piece[3][ho] * piece[4][wo]
                beta = room * B * extent[0]
                work += 1
                if base + w[2] * B * piece[0][first[0]] > reach:
                    break
                if work > most_work:
                    return found, work, min(reach, floors[i])
                least = B * piece[0][first[0]]
                sizes = (alpha, beta, kappa, extent[1], all_outs)
                if _rest(own, eA, w[2], A, least, sizes, rooms) > reach:
                    continue
                outs = tile[3][ho] * tile[4][wo]
                images = _images(room, F_bits, bits[2] * outs, extent[0], rooms)
                for n in range(_first(tile[0], first[0], images), len(tile[0])):
                    cost = own + w[2] * B * piece[0][n]
                    work += 2  # as long as two other steps
                    if cost + eA * fewest > reach:
                        break
                    O_bits = bits[2] * outs * tile[0][n]
                    most = _filters(room * tile[0][n], F_bits, O_bits, extent[1], rooms)
                    if most < 1:
                        continue
                    if only_least and found and most >= extent[1]:
                        last = cost + eA * A  # filters are whole, and pieces of images rise
                        if last >= energies[0]:
                            break
                    for m in range(_first(tile[1], first[1], most), len(tile[1])):
                        energy = cost + eA * piece[1][m]
                        if energy > reach or (only_least and found and energy >= energies[0]):
                            break
                        if only_least:
                            found, reach = 0, energy
                        if found == len(energies):
                            return found, work, min(reach, floors[i])
                        energies[found] = energy
                        classes[found, 0], classes[found, 1], classes[found, 2] = n, m, c
                        classes[found, 3], classes[found, 4] = ho, wo
                        classes[found, 5], classes[found, 6] = hf, wf
                        found += 1
                        work += 1
    return found, work, reach


@_compiled
def chains(
    extent: Any, least: Any, largest: Any, most: Any, most_work: Any, tiles: Any, pieces: Any
) -> Any:
    """Falling chains of tiles from `least` to `largest` with at most `most` pieces at every level.

    Args:
        tiles, pieces: they are written here [chains, levels].
    Returns: how many there are; -1 if there is no place for them, or too much work. And work.
    """
    levels = len(least)
    length = np.zeros((levels + 1, levels + 1), np.int64)  # of kinds of pieces, by level
    number = np.zeros((levels + 1, levels + 1), np.int64)
    length[0, 0], number[0, 0] = extent, 1
    tile = np.zeros(levels, np.int64)
    total = np.zeros(levels, np.int64)
    tile[0] = least[0] - 1
    found = work = k = 0
    while k >= 0:
        tile[k] += 1
        if tile[k] > largest[k] or (k > 0 and tile[k] > tile[k - 1]):
            k -= 1
            continue
        work += 1
        if work > most_work:
            return -1, work
        t = tile[k]
        full = rests = 0
        for i in range(k + 1):  # a whole tile as often as it fits, and one rest of each kind
            full += length[k, i] // t * number[k, i]
            rest = length[k, i] % t
            length[k + 1, i + 1] = rest
            number[k + 1, i + 1] = number[k, i] if rest else 0
            rests += number[k + 1, i + 1]
        length[k + 1, 0], number[k + 1, 0] = t, full
        total[k] = full + rests
        if total[k] > most[k]:
            continue
        if k < levels - 1:
            k += 1
            tile[k] = least[k] - 1
            continue
        if found == len(tiles):
            return -1, work
        tiles[found], pieces[found] = tile, total
        found += 1
    return found, work


@_compiled
def nested(
    extent: Any, low: Any, high: Any, whole: Any, floor: Any, tile: Any, loop: Any, pieces: Any
) -> None:
    """Raise the pieces of all classes to what tiles above leave them; see `tables.below`.

    Args:
        low, high: smallest and largest tiles [loops] of the level above.
        whole: pieces [loops] there that are whole tiles.
        floor: pieces [loops] at least.
        tile: the largest of each class; `loop`: which loop that is; `pieces`: at least, changed.
    """
    for i in range(len(tile)):
        d = loop[i]
        least = max(pieces[i], floor[d])
        if whole[d] > 0:
            most = min(high[d], np.floor(extent[d] / whole[d]))
            if np.floor(most / tile[i]) * tile[i] < low[d]:  # no tile is a multiple
                rest = max(extent[d] - whole[d] * most, 0.0)
                least = max(least, whole[d] * np.ceil(most / tile[i]) + np.ceil(rest / tile[i]))
        pieces[i] = least


@_compiled
def _chosen(classes: Any, own: Any, place: Any, low: Any, high: Any, least: Any) -> Any:
    """`tables.chosen`: smallest and largest tiles and pieces of one place; returns its rows."""
    tile, longest, _, _, _, _, _, bits = classes
    pieces, _, least_rows, height, width, rooms = own
    for d in range(7):
        low[d], high[d] = tile[d][place[d]], longest[d][place[d]]
        least[d] = pieces[d][place[d]]
    stored = height[0][place[3], place[5]] * width[0][place[4], place[6]]
    of_I = bits[0] * low[0] * low[2] * stored
    of_F = bits[1] * low[1] * low[2] * low[5] * low[6]
    of_O = bits[2] * low[0] * low[1] * low[3] * low[4]
    for r in range(rooms.shape[0]):
        I, F, O = of_I * rooms[r, 1], of_F * rooms[r, 2], of_O * rooms[r, 3]  # noqa: E741
        free = rooms[r, 0] - (I + F + O)
        for d in range(3):  # what a tile takes is proportional to N, M and C
            share = I + O if d == 0 else (F + O if d == 1 else I + F)
            if share > 0:
                high[d] = min(high[d], np.floor(low[d] * (1 + free / share) * (1 + 1e-12)))
    rows = max(height[1][place[3], place[5]], least_rows[0])
    return rows, max(width[1][place[4], place[6]], least_rows[1])


@_compiled
def _raise(classes: Any, place: Any, high: Any, least: Any, above: Any) -> None:
    """`tables.raised`: the pieces of a place at least, of which the largest tiles do not fit."""
    longest, extent = classes[1], classes[6]
    lows, highs, pieces = above
    for d in range(7):
        if high[d] >= longest[d][place[d]]:
            continue
        for k in range(min(len(lows), 2)):
            full = pieces[0, d] - 1 if k == 0 else max(pieces[1, d] - pieces[0, d], 0)
            most = min(highs[k, d], np.floor(extent[d] / full)) if full > 0 else highs[k, d]
            if full <= 0 or np.floor(most / high[d]) * high[d] >= lows[k, d]:
                made = np.ceil(extent[d] / high[d])
            else:
                rest = max(extent[d] - full * most, 0.0)
                made = full * np.ceil(most / high[d]) + np.ceil(rest / high[d])
            least[d] = max(least[d], made)


@_compiled
def _paid(w: Any, pieces: Any, R: Any) -> Any:
    """`nodes.cost`."""
    n, m, c, ho, wo, hf, wf = pieces
    return w[0] + w[1] * c * hf * wf + w[5] * R + w[2] * ho * wo * n + (w[3] + w[4] * R) * m


@_compiled
def _least_under(
    level: Any, known: Any, places: Any, reach: Any, each: Any, as_found: Any, found: Any,
    found_at: Any,
) -> Any:  # fmt: skip
    """The least energy of a level under a node, and work; from `reach` on only that it is no less.

    Args:
        level: as `walk` takes it.
        known: an energy that it is not below.
        places: classes [2, 7] that may have it (-1: none); the second is where it was found last.
        each: steps of the walk at most.
    """
    _, split, first, height, width, rows, _, _, _, w = level
    for i in range(2):
        at = places[i]
        nests = at[0] >= 0
        for d in range(7):
            nests = nests and at[d] >= first[d]
        if not nests:
            continue
        of_rows = max(height[1][at[3], at[5]], rows[0])
        of_columns = max(width[1][at[4], at[6]], rows[1])
        taken = (split[0][at[0]], split[1][at[1]], split[2][at[2]], split[3][at[3]],
                 split[4][at[4]], split[5][at[5]], split[6][at[6]])  # fmt: skip
        there = _paid(w, taken, of_rows * of_columns)
        if there <= known + 1e-15 * abs(known):
            return known, 2
        reach = min(reach, there)
    margin = 1e-11 * (abs(w[0]) + abs(reach)) if reach < np.inf else 0.0
    only = each >= 0  # the constant True would be a type of its own, and `walk` compiled again
    number, steps, walked = walk(level, reach + margin, only, each, found, found_at)
    energy = min(reach, walked - 1e-11 * (abs(walked) + abs(w[0])))
    if number > 0:
        for d in range(7):
            places[1, d] = found_at[0, d]
        energy = min(reach, found[0])
        if walked < found[0] and not as_found:
            energy = min(energy, walked - 1e-11 * (abs(walked) + abs(w[0])))
    return max(known, energy), steps + 10


@_compiled
def children(
    classes: Any, own: Any, inner: Any, above: Any, paid: Any, places: Any, bounds: Any,
    each: Any, all_work: Any, as_found: Any,
) -> Any:  # fmt: skip
    """Bounds of the nodes below one node, by the places of their classes; see `nodes.child`.

    A walk that takes too much work ends with a lower bound; and where all together take too much,
    the last nodes are not bounded.

    Args:
        classes: tiles, longest tiles; the latter, their loops and pieces in one flat array with
            the ends of the loops; extents, bits.
        own: pieces, first classes, least rows, tables of both axes and rooms of the node's level.
        inner: of the levels below: tables of both axes, rooms of all in one table with the ends of
            each level's, weights [level, 6], least energies known, the places that have them (-1:
            none), and what may be added to the weights: all together no more than nothing (see
            `dual`).
        above: smallest and largest tiles and pieces of the levels above [level, 7].
        paid: weights of the own level, energy of the levels above, what rows of the next level
            cost for each visit, and the energy at which a bound need not be exact.
        bounds: written here.
        each, all_work: steps of a walk, and of all of them, at most.
        as_found: where a walk ends early take what it has found, which is no bound.
    Returns: how many are bounded, and work.
    """
    tile, _, flat_high, flat_loop, direct, ends, extent, bits = classes
    height, width, rooms, room_ends, weights, known, known_at, moved = inner
    own_weights, done, crossing, reach = paid
    lows, highs, counts = above
    depth = len(lows)
    low, high, least, whole = np.empty(7), np.empty(7), np.empty(7), np.empty(7)
    pieces = np.empty(len(direct))
    rows, rest = np.empty(2), np.empty(len(known))
    found, found_at, first = np.empty(1), np.empty((1, 7), np.int64), np.empty(7, np.int64)
    tried = np.full((2, len(known), 2, 7), -1)  # under the own weights, and under what is added
    for j in range(len(known)):
        for d in range(7):
            tried[0, j, 0, d] = known_at[j, d]
    work = 0
    for i in range(len(places)):
        if work > all_work:
            return i, work
        place = places[i]
        nests = True
        for d in range(7):
            nests = nests and place[d] >= own[1][d]
            first[d] = place[d]
        if not nests:
            bounds[i] = np.inf
            continue
        rows[0], rows[1] = _chosen(classes, own, place, low, high, least)
        _raise(classes, place, high, least, above)
        R = rows[0] * rows[1]
        total = done + _paid(own_weights, (least[0], least[1], least[2], least[3], least[4],
                                           least[5], least[6]), R)  # fmt: skip
        moved_total = total
        for j in range(len(known)):
            rest[j] = known[j]
            total += known[j]
        work += 4
        if total < reach and len(known):
            for n in range(len(direct)):
                pieces[n] = direct[n]
            work += len(direct) // 4
            if depth == 0:
                for d in range(7):
                    whole[d] = least[d] - 1
                nested(extent, low, high, whole, least, flat_high, flat_loop, pieces)
            else:
                for d in range(7):
                    whole[d] = counts[0, d] - 1
                nested(extent, lows[0], highs[0], whole, least, flat_high, flat_loop, pieces)
                if depth == 1:
                    for d in range(7):
                        whole[d] = max(least[d] - counts[0, d], 0.0)
                    nested(extent, low, high, whole, least, flat_high, flat_loop, pieces)
                else:
                    for d in range(7):
                        whole[d] = max(counts[1, d] - counts[0, d], 0.0)
                    nested(extent, lows[1], highs[1], whole, least, flat_high, flat_loop, pieces)
            split = (
                pieces[ends[0] : ends[1]], pieces[ends[1] : ends[2]], pieces[ends[2] : ends[3]],
                pieces[ends[3] : ends[4]], pieces[ends[4] : ends[5]], pieces[ends[5] : ends[6]],
                pieces[ends[6] : ends[7]],
            )  # fmt: skip
            for j in range(len(known)):
                if total >= reach:
                    break
                w = weights[j].copy()
                if j == 0 and crossing > 0:  # rows of the next level times visits of this one
                    w[5] += crossing * least[1]
                    w[0] -= crossing * least[1] * R
                own_rooms = rooms[room_ends[j] : room_ends[j + 1]]
                level = (tile, split, first, height, width, rows, extent, bits, own_rooms, w)
                others = total - rest[j]
                rest[j], steps = _least_under(
                    level, known[j], tried[0, j], reach - others, each, as_found, found, found_at
                )
                total, work = others + rest[j], work + steps
            if total < reach and len(moved):
                for j in range(len(known)):
                    w = weights[j].copy()
                    for n in range(6):
                        w[n] += moved[j, n]
                        if n > 0:
                            w[n] = max(w[n], 0.0)
                    if j == 0 and crossing > 0:
                        w[5] += crossing * least[1]
                        w[0] -= crossing * least[1] * R
                    own_rooms = rooms[room_ends[j] : room_ends[j + 1]]
                    level = (tile, split, first, height, width, rows, extent, bits, own_rooms, w)
                    most = reach - moved_total if j == len(known) - 1 else np.inf
                    energy, steps = _least_under(
                        level, -np.inf, tried[1, j], most, each, as_found, found, found_at
                    )
                    moved_total, work = moved_total + energy, work + steps
                total = max(total, moved_total)
        bounds[i] = total
    return len(places), work
