"""Walks the classes of tiles of one level, loop by loop, and leaves what costs too much.

The reduction is chosen first, then HO, WO and N; M comes last and in closed form. A partial choice
has a floor, and goes on only below the bound. These functions are plain Python; where the extra
`compiled` is installed, numba compiles them. Nothing imports this module before a search begins.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["chains", "children", "nested", "shift", "walk"]

SOME = 8  # of the cheapest reductions are sought one by one, before all others are sorted


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function, and keep what is compiled beside it; as it is where numba is not.

    What is divided by 0 is without end, as in arrays; with Python's error no loop is vectorised.
    """
    try:
        import numba
    except ImportError:
        return function
    compiled: Callable[..., Any] = numba.njit(cache=True, error_model="numpy")(function)
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
        rooms: of `_least_rooms` [bit].
    """
    alpha, beta, kappa, most_A, most_B = sizes
    of_F, of_I, of_both, of_O = rooms
    A, B = max(A, alpha / of_F), max(B, beta / of_I)
    if most_A < A or most_B < B:
        return np.inf  # not even one filter fits, or one output
    root = np.sqrt(eA * alpha) + np.sqrt(eB * beta)
    coupled = max(root * root / of_both, 2 * np.sqrt(eA * eB * kappa / of_O))
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
def _first(tiles: Any, begin: Any, end: Any, most: Any) -> Any:
    """The first class from `begin` on whose smallest tile is at most `most`; tiles fall."""
    low, high = begin, end
    while low < high:
        middle = (low + high) // 2
        if tiles[middle] <= most:
            high = middle
        else:
            low = middle + 1
    return low


@_compiled
def _least_rooms(rooms: Any) -> Any:
    """The least room of F, of I, of both together and of O; no end where they do not lie."""
    of_F = of_I = of_both = of_O = np.inf
    for r in range(rooms.shape[0]):
        capacity = rooms[r, 0]
        if rooms[r, 2] > 0:
            of_F = min(of_F, capacity)
        if rooms[r, 1] > 0:
            of_I = min(of_I, capacity)
        if rooms[r, 1] > 0 and rooms[r, 2] > 0:
            of_both = min(of_both, capacity)
        if rooms[r, 3] > 0:
            of_O = min(of_O, capacity)
    return of_F, of_I, of_both, of_O


@_compiled
def _reductions(level: Any, reach: Any, least: Any, arrays: Any) -> Any:
    """Classes of C, HF and WF whose floor is at most `reach`, in no order; and work.

    Args:
        least: of `_least_rooms`.
        arrays: as `walk` takes them.
    """
    tiles, pieces, ends, first, height, width, rows, extent, bits, _, w = level
    floors, places, numbers, _, _ = arrays
    ho, wo = first[3], first[4]
    begin_c, end_c, begin_h, end_h = ends[2] + first[2], ends[3], ends[5] + first[5], ends[6]
    begin_w, end_w = ends[6] + first[6], ends[7]
    many_c, many_w = end_c - ends[2], end_w - ends[6]
    outs = extent[0] * extent[3] * extent[4]
    B = pieces[ends[0] + first[0]] * pieces[ends[3] + ho] * pieces[ends[4] + wo]
    A = pieces[ends[1] + first[1]]
    w0, w1, eB, w3, w4, w5 = w[0], w[1], w[2], w[3], w[4], w[5]
    bits_I, bits_F, filters = bits[0], bits[1], extent[1]
    kappa = bits[2] * filters * outs
    of_F, of_I, of_both, of_O = least
    found = work = 0
    for h in range(begin_h, end_h):
        hf, of_rows = h - ends[5], max(rows[0], height[2, ho, h - ends[5]])
        for v in range(begin_w, end_w):
            wf = v - ends[6]
            if w0 + w1 * pieces[begin_c] * pieces[h] * pieces[v] > reach:  # and so do all others
                work += 4 * (end_w - v)
                break
            R = of_rows * max(rows[1], width[2, wo, wf])
            ratio = height[3, ho, hf] * width[3, wo, wf]
            eA = w3 + w4 * R
            for c in range(begin_c, end_c):
                base = w0 + w1 * pieces[c] * pieces[h] * pieces[v] + w5 * R
                work += 4  # as long as so many other steps
                if base > reach:
                    break  # pieces rise
                alpha = bits_F * tiles[c] * tiles[h] * tiles[v] * filters
                beta = bits_I * tiles[c] / ratio * outs
                of_A, of_B = max(A, alpha / of_F), max(B, beta / of_I)
                apart = eA * of_A + eB * of_B
                if base + apart <= reach and filters >= of_A and outs >= of_B:
                    floors[found], numbers[0, found], numbers[1, found] = base, apart, eA * alpha
                    numbers[2, found], numbers[3, found] = eB * beta, eA * eB * kappa
                    places[found] = (hf * many_w + wf) * many_c + c - ends[2]
                    found += 1
    for i in range(found):
        root = np.sqrt(numbers[1, i]) + np.sqrt(numbers[2, i])
        coupled = max(root * root / of_both, 2 * np.sqrt(numbers[3, i] / of_O))
        floors[i] += max(numbers[0, i], coupled)
    number, found = found, 0
    for i in range(number):
        if floors[i] <= reach and floors[i] < np.inf:
            floors[found], places[found] = floors[i], places[i]
            found += 1
    return found, work


@_compiled
def _forward(floors: Any, places: Any, begin: Any, end: Any) -> None:
    """Bring the least floor from `begin` on there, the first of equals; the others keep order."""
    at = begin
    for i in range(begin + 1, end):
        if floors[i] < floors[at]:
            at = i
    floor, place = floors[at], places[at]
    for i in range(at, begin, -1):
        floors[i], places[i] = floors[i - 1], places[i - 1]
    floors[begin], places[begin] = floor, place


@_compiled
def walk(
    level: Any, reach: Any, only_least: Any, most_work: Any, energies: Any, classes: Any,
    arrays: Any,
) -> Any:  # fmt: skip
    """All classes of a level that fit and cost at most `reach`, or the cheapest of them.

    Args:
        level: smallest tiles and least pieces of the classes of all loops, one loop after the
            other, with the ends of the loops; the first class of each, tables of both axes, least
            rows, extents, bits, rooms and weights of a level.
        only_least: only one, the cheapest; of equals, the first.
        energies, classes: what is found is written here, in no order.
        arrays: to be written into: numbers, places and four more numbers of each choice of classes
            of C, HF and WF; and what is cheapest, where no place of its own is given.
    Returns: how many were found; work, in classes; and an energy that all others exceed: `reach`
        unless there was no place, or too much work.
    """
    tiles, pieces, ends, first, height, width, rows, extent, bits, rooms, w = level
    floors, places = arrays[0], arrays[1]
    least_rooms = _least_rooms(rooms)
    many, work = _reductions(level, reach, least_rooms, arrays)
    w0, w1, eB, w3, w4, w5 = w[0], w[1], w[2], w[3], w[4], w[5]
    of_n, of_m, of_c, of_ho = ends[0], ends[1], ends[2], ends[3]
    of_wo, of_hf, of_wf = ends[4], ends[5], ends[6]
    all_outs = extent[0] * extent[3] * extent[4]
    kappa = bits[2] * extent[1] * all_outs
    A, of_images = pieces[of_m + first[1]], pieces[of_n + first[0]]
    of_columns = pieces[of_wo + first[4]]
    found = 0
    for i in range(many):
        if only_least and i < SOME:
            _forward(floors, places, i, many)
        elif i == (SOME if only_least else 0):
            by = np.argsort(floors[i:many], kind="mergesort")
            floors[i:many], places[i:many] = floors[i:many][by], places[i:many][by]
        if floors[i] > reach:
            break
        if work > most_work:
            return found, work, min(reach, floors[i])
        taps, c = divmod(places[i], of_ho - of_c)
        hf, wf = divmod(taps, ends[7] - of_wf)
        base = w0 + w1 * pieces[of_c + c] * pieces[of_hf + hf] * pieces[of_wf + wf]
        F_bits = bits[1] * tiles[of_c + c] * tiles[of_hf + hf] * tiles[of_wf + wf]
        alpha = F_bits * extent[1]
        fewest = A  # blocks of filters, however small those of ifmaps
        for r in range(rooms.shape[0]):
            if rooms[r, 2] > 0:
                fewest = max(fewest, alpha / rooms[r, 0] * (1 - 1e-12))
        for ho in range(first[3], of_wo - of_ho):
            of_rows, piece_ho = max(rows[0], height[1, ho, hf]), pieces[of_ho + ho]
            R = of_rows * max(rows[1], width[2, first[4], wf])
            paid = base + w5 * R
            eA = w3 + w4 * R
            I_bits = bits[0] * tiles[of_c + c] * height[0, ho, hf]
            beta = I_bits / width[3, first[4], wf] * piece_ho * extent[0] * extent[4]
            B = piece_ho * of_columns * of_images
            work += 1
            if base + eB * B > reach:
                break  # pieces rise
            if work > most_work:
                return found, work, min(reach, floors[i])
            sizes = (alpha, beta, kappa, extent[1], all_outs)
            if _rest(paid, eA, eB, A, B, sizes, least_rooms) > reach:
                continue
            for wo in range(first[4], of_hf - of_wo):
                R = of_rows * max(rows[1], width[1, wo, wf])
                eA = w3 + w4 * R
                paid = base + w5 * R
                room = I_bits * width[0, wo, wf]
                B = piece_ho * pieces[of_wo + wo]
                beta = room * B * extent[0]
                least = B * of_images
                work += 1
                if base + eB * B * of_images > reach:
                    break
                if work > most_work:
                    return found, work, min(reach, floors[i])
                sizes = (alpha, beta, kappa, extent[1], all_outs)
                if _rest(paid, eA, eB, A, least, sizes, least_rooms) > reach:
                    continue
                outs = tiles[of_ho + ho] * tiles[of_wo + wo]
                images = _images(room, F_bits, bits[2] * outs, extent[0], rooms)
                for n in range(_first(tiles, of_n + first[0], of_m, images), of_m):
                    cost = paid + eB * B * pieces[n]
                    work += 2  # as long as two other steps
                    if cost + eA * fewest > reach:
                        break
                    O_bits = bits[2] * outs * tiles[n]
                    most = _filters(room * tiles[n], F_bits, O_bits, extent[1], rooms)
                    if most < 1:
                        continue
                    if only_least and found and most >= extent[1]:
                        last = cost + eA * A  # filters are whole, and pieces of images rise
                        if last >= energies[0]:
                            break
                    for m in range(_first(tiles, of_m + first[1], of_c, most), of_c):
                        energy = cost + eA * pieces[m]
                        if energy > reach or (only_least and found and energy >= energies[0]):
                            break
                        if only_least:
                            found, reach = 0, energy
                        if found == len(energies):
                            return found, work, min(reach, floors[i])
                        energies[found] = energy
                        classes[found, 0], classes[found, 1] = n - of_n, m - of_m
                        classes[found, 2], classes[found, 3], classes[found, 4] = c, ho, wo
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
    extent: Any,
    low: Any,
    high: Any,
    whole: Any,
    floor: Any,
    tile: Any,
    ends: Any,
    first: Any,
    pieces: Any,
) -> None:
    """Raise the pieces of all classes to what tiles above leave them; see `tables.below`.

    Args:
        low, high: smallest and largest tiles [loops] of the level above.
        whole: pieces [loops] there that are whole tiles.
        floor: pieces [loops] at least.
        tile: the largest of each class, one loop after the other; `ends` of the loops.
        first: class of each loop from which on pieces are asked for.
        pieces: of each class at least, changed.
    """
    for d in range(len(ends) - 1):
        least = floor[d]
        begin, end = ends[d] + first[d], ends[d + 1]
        if whole[d] > 0:
            full, low_d = whole[d], low[d]
            most = min(high[d], np.floor(extent[d] / full))
            rest = max(extent[d] - full * most, 0.0)
            for i in range(begin, end):
                t = tile[i]
                part = most / t
                made = full * np.ceil(part) + np.ceil(rest / t)
                multiple = np.floor(part) * t >= low_d
                made = least if multiple else max(least, made)
                pieces[i] = max(pieces[i], made)
        else:
            for i in range(begin, end):
                pieces[i] = max(pieces[i], least)


@_compiled
def _chosen(classes: Any, own: Any, place: Any, low: Any, high: Any, least: Any) -> Any:
    """`tables.chosen`: smallest and largest tiles and pieces of one place; returns its rows."""
    smallest, longest, _, ends, _, bits = classes
    pieces, _, least_rows, height, width, rooms = own
    for d in range(7):
        at = ends[d] + place[d]
        low[d], high[d], least[d] = smallest[at], longest[at], pieces[at]
    stored = height[0, place[3], place[5]] * width[0, place[4], place[6]]
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
    rows = max(height[1, place[3], place[5]], least_rows[0])
    return rows, max(width[1, place[4], place[6]], least_rows[1])


@_compiled
def _raise(classes: Any, place: Any, high: Any, least: Any, above: Any) -> None:
    """`tables.raised`: the pieces of a place at least, of which the largest tiles do not fit."""
    longest, ends, extent = classes[1], classes[3], classes[4]
    lows, highs, pieces = above
    for d in range(7):
        if high[d] >= longest[ends[d] + place[d]]:
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
def _there(level: Any, at: Any) -> Any:
    """The energy of classes of a level; without end if their tiles are larger than those above."""
    _, pieces, ends, first, height, width, rows, _, _, _, w = level
    for d in range(7):
        if at[d] < first[d]:
            return np.inf
    R = max(height[1, at[3], at[5]], rows[0]) * max(width[1, at[4], at[6]], rows[1])
    split = (pieces[ends[0] + at[0]], pieces[ends[1] + at[1]], pieces[ends[2] + at[2]],
             pieces[ends[3] + at[3]], pieces[ends[4] + at[4]], pieces[ends[5] + at[5]],
             pieces[ends[6] + at[6]])  # fmt: skip
    return _paid(w, split, R)


@_compiled
def _least_under(
    level: Any, known: Any, places: Any, reach: Any, each: Any, as_found: Any, arrays: Any
) -> Any:
    """The least energy of a level under a node, and work; from `reach` on only that it is no less.

    Args:
        level: as `walk` takes it; `arrays`, too.
        known: an energy that it is not below.
        places: classes [2, 7] that may have it (-1: none); the second is where it was found last.
        each: steps of the walk at most.
    """
    w, (_, _, _, found, found_at) = level[10], arrays
    for i in range(2):
        there = _there(level, places[i])
        if there <= known + 1e-15 * abs(known):
            return known, 2
        reach = min(reach, there)
    margin = 1e-11 * (abs(w[0]) + abs(reach)) if reach < np.inf else 0.0
    only = each >= 0  # the constant True would be a type of its own, and `walk` compiled again
    number, steps, walked = walk(level, reach + margin, only, each, found, found_at, arrays)
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
    each: Any, all_work: Any, as_found: Any, arrays: Any,
) -> Any:  # fmt: skip
    """Bounds of the nodes below one node, by the places of their classes; see `nodes.child`.

    A walk that takes too much work ends with a lower bound; and where all together take too much,
    the last nodes are not bounded.

    Args:
        classes: smallest and largest tiles and pieces, one loop after the other, with the ends of
            the loops; extents, bits.
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
    tiles, flat_high, direct, ends, extent, bits = classes
    height, width, rooms, room_ends, weights, known, known_at, moved = inner
    own_weights, done, crossing, reach = paid
    lows, highs, counts = above
    depth = len(lows)
    low, high, least, whole = np.empty(7), np.empty(7), np.empty(7), np.empty(7)
    pieces = np.empty(len(direct))
    rows, rest, w, first = np.empty(2), np.empty(len(known)), np.empty(6), np.empty(7, np.int64)
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
            pieces[:] = direct
            work += len(direct)
            if depth == 0:
                for d in range(7):
                    whole[d] = least[d] - 1
                nested(extent, low, high, whole, least, flat_high, ends, first, pieces)
            else:
                for d in range(7):
                    whole[d] = counts[0, d] - 1
                nested(extent, lows[0], highs[0], whole, least, flat_high, ends, first, pieces)
                if depth == 1:
                    for d in range(7):
                        whole[d] = max(least[d] - counts[0, d], 0.0)
                    nested(extent, low, high, whole, least, flat_high, ends, first, pieces)
                else:
                    for d in range(7):
                        whole[d] = max(counts[1, d] - counts[0, d], 0.0)
                    nested(extent, lows[1], highs[1], whole, least, flat_high, ends, first, pieces)
            for j in range(len(known)):
                if total >= reach:
                    break
                w[:] = weights[j]
                if j == 0 and crossing > 0:  # rows of the next level times visits of this one
                    w[5] += crossing * least[1]
                    w[0] -= crossing * least[1] * R
                own_rooms = rooms[room_ends[j] : room_ends[j + 1]]
                level = tiles, pieces, ends, first, height, width, rows, extent, bits, own_rooms, w
                others = total - rest[j]
                rest[j], steps = _least_under(
                    level, known[j], tried[0, j], reach - others, each, as_found, arrays
                )
                total, work = others + rest[j], work + steps
            if total < reach and len(moved):
                for j in range(len(known)):
                    w[:] = weights[j]
                    for n in range(6):
                        w[n] += moved[j, n]
                        if n > 0:
                            w[n] = max(w[n], 0.0)
                    if j == 0 and crossing > 0:
                        w[5] += crossing * least[1]
                        w[0] -= crossing * least[1] * R
                    own_rooms = rooms[room_ends[j] : room_ends[j + 1]]
                    level = (
                        tiles, pieces, ends, first, height, width, rows, extent, bits, own_rooms, w
                    )  # fmt: skip
                    most = reach - moved_total if j == len(known) - 1 else np.inf
                    energy, steps = _least_under(
                        level, -np.inf, tried[1, j], most, each, as_found, arrays
                    )
                    moved_total, work = moved_total + energy, work + steps
                total = max(total, moved_total)
        bounds[i] = total
    return len(places), work


@_compiled
def _counted(classes: Any, tables: Any, axes: Any, at: Any, counts: Any) -> None:
    """`dual._counts`, written into `counts`."""
    (_, _, _, ends, _, _), (pieces, _, rows), (height, width) = classes, tables, axes
    R = max(height[1, at[3], at[5]], rows[0]) * max(width[1, at[4], at[6]], rows[1])
    counts[0] = pieces[ends[2] + at[2]] * pieces[ends[5] + at[5]] * pieces[ends[6] + at[6]]
    counts[1] = pieces[ends[0] + at[0]] * pieces[ends[3] + at[3]] * pieces[ends[4] + at[4]]
    counts[2] = pieces[ends[1] + at[1]]
    counts[3], counts[4] = counts[2] * R, R


@_compiled
def _least_moved(level: Any, at: Any, most_work: Any, arrays: Any) -> Any:
    """`dual._least`: the least energy of a level, and work.

    Args:
        level: as `walk` takes it; `arrays`, too.
        at: classes that are likely to have it; changed to those that do (-1: not known).
    """
    constant, (_, _, _, found, found_at) = level[10][0], arrays
    there, margin = _there(level, at), 1e-11 * abs(constant)
    loose = there + 1e-11 * abs(there) + margin if there < np.inf else np.inf
    only = most_work >= 0  # see `_least_under`
    number, work, walked = walk(level, loose, only, most_work, found, found_at, arrays)
    settled = min(there, walked - 1e-11 * abs(walked) - margin)
    if walked >= loose:
        settled = there
    elif number > 0 and walked >= found[0]:
        settled = found[0]
    if number > 0:
        for d in range(7):
            at[d] = found_at[0, d]
        return min(found[0], settled), work
    if there == np.inf:
        at[0] = -1
    return settled, work


@_compiled
def shift(
    classes: Any, tables: Any, outer: Any, axes: Any, rooms: Any, own: Any, known: Any, goal: Any,
    start: Any, best: Any, most_work: Any, arrays: Any,
) -> Any:  # fmt: skip
    """`dual.shifted`, step by step.

    Args:
        classes: as `children` takes them.
        tables: pieces, first classes and least rows of the levels below a node.
        outer, axes: tables of both axes, of the first of these levels and of the others.
        rooms: of all these levels in one table, with the ends of each level's.
        own: weights [levels, 6].
        known: energy of the levels above; energies [levels] and places [levels, 7] of these ones.
        goal: the best energy known, steps at most, and after how many without a better bound they
            are halved.
        start: multipliers [levels - 1, 5] that are tried first; 0: none.
        best: weights, energies, places and multipliers with the highest bound, written here.
        most_work: of each walk.
    Returns: the bound, walks, and their work.
    """
    tiles, _, _, ends, extent, bits = classes
    pieces, first, rows = tables
    done, energies, places = known
    target, steps, patience = goal
    levels = len(own)
    now, now_at, now_energies = np.zeros((levels - 1, 5)), places.copy(), energies.copy()
    weights, slope, counts = own.copy(), np.empty((levels - 1, 5)), np.empty((levels, 5))
    scale = np.empty((levels - 1, 5))
    best[0][:], best[1][:], best[2][:], best[3][:] = own, energies, places, 0.0
    below = 0.0
    for j in range(levels):
        below += energies[j]
        _counted(classes, tables, axes, places[j], counts[j])
    bound = now_bound = done + below
    for b in range(levels - 1):
        for n in range(5):
            scale[b, n] = max(counts[b, n], counts[b + 1, n], 1.0)
    length, without, walks, work = 1.0, 0, 0, 0.0
    for step in range(steps):
        norm, starts = 0.0, False
        for b in range(levels - 1):
            for n in range(5):
                slope[b, n] = (counts[b, n] - counts[b + 1, n]) / scale[b, n]
                norm += slope[b, n] * slope[b, n]
                starts = starts or start[b, n] != 0
        if norm == 0 or bound >= target or target == np.inf:
            break
        factor = length * (target - now_bound) / norm
        for b in range(levels - 2, -1, -1):  # of 0 or more, and no weight below 0
            for n in range(5):
                more = now[b, n] + factor * slope[b, n] / scale[b, n]
                if step == 0 and starts:
                    more = start[b, n]
                inner = now[b + 1, n] if b + 1 < levels - 1 else 0.0
                now[b, n] = min(max(more, 0.0), own[b + 1, n + 1] + inner)
        weights[:] = own
        for b in range(levels - 1):
            for n in range(5):
                weights[b, n + 1] += now[b, n]
                weights[b + 1, n + 1] -= now[b, n]
        below, is_known = 0.0, True
        for j in range(levels):
            for n in range(1, 6):
                weights[j, n] = max(weights[j, n], 0.0)
            height, width = outer if j == 0 else axes
            own_rooms = rooms[0][rooms[1][j] : rooms[1][j + 1]]
            level = (
                tiles, pieces, ends, first, height, width, rows, extent, bits, own_rooms, weights[j]
            )  # fmt: skip
            now_energies[j], more_work = _least_moved(level, now_at[j], most_work, arrays)
            walks, work, below = walks + 1, work + more_work, below + now_energies[j]
            is_known = is_known and now_at[j, 0] >= 0
        now_bound = done + below
        if not is_known:
            break
        for j in range(levels):
            _counted(classes, tables, axes, now_at[j], counts[j])
        without += 1
        if now_bound > bound:
            bound, without = now_bound, 0
            best[0][:], best[1][:], best[2][:], best[3][:] = weights, now_energies, now_at, now
        if without == patience:
            length, without = length / 2, 0
    return bound, walks, work
