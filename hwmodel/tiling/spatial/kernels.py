"""Loops of the search over chains of tiles: pairs of two lists, pieces that differ, what meets.

These functions are plain Python; where the extra `compiled` is installed, numba compiles them, and
the search takes them in the place of arrays. Nothing imports this module before.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hwmodel.tiling.optimal.kernels import _compiled

__all__ = ["counted", "joined", "meetings", "pair", "pieces", "rows_of_pieces"]


@_compiled
def _fits(own: Any, other: Any, bits: Any, bounds: Any) -> Any:
    """Whether what two chains take of all that is bounded is within the bounds."""
    columns, ends, most = bounds
    start = 0
    for b in range(len(most)):
        taken = 0.0
        for z in range(start, ends[b]):
            taken += bits[z] * own[columns[z]] * other[columns[z]]
        if taken > most[b]:
            return False
        start = ends[b]
    return True


@_compiled
def pair(first: Any, second: Any, weights: Any, bits: Any, bounds: Any, below: Any) -> Any:
    """The cheapest pair of a chain of each of two lists that fits and costs less than `below`.

    Args:
        first: counts [chain, plan], and what is bounded [chain, part]; `second` alike.
        weights: of what plans count, all other axes in them [chip's unit].
        bits: of parts that add up to what is bounded, all other axes in them.
        bounds: columns of these parts, bound after bound; where each bound's end; how much it is.

    Returns: its energy, infinite where there is none, and its places in the lists.
    """
    counts, parts = first
    others, rests = second
    number, many, plans, wide = len(counts), len(others), len(weights), parts.shape[1]
    least, lowest = np.full(wide, np.inf), np.full(wide, np.inf)
    for i in range(number):
        for r in range(wide):
            least[r] = min(least[r], parts[i, r])
    for k in range(many):
        for r in range(wide):
            lowest[r] = min(lowest[r], rests[k, r])
    low, high = np.full(plans, np.inf), np.full(plans, -np.inf)
    fitting, fit = np.empty(many, np.int64), 0
    for k in range(many):
        if _fits(rests[k], least, bits, bounds):
            fitting[fit] = k
            fit += 1
            for p in range(plans):
                low[p] = min(low[p], others[k, p])
                high[p] = max(high[p], others[k, p])
    weighted, cheapest = np.empty((number, plans)), np.full(plans, np.inf)
    here, floors, some = np.empty(number, np.int64), np.empty(number), 0
    for i in range(number if fit else 0):
        if _fits(parts[i], lowest, bits, bounds):
            floor = 0.0
            for p in range(plans):
                weighted[some, p] = counts[i, p] * weights[p]
                floor += min(weighted[some, p] * low[p], weighted[some, p] * high[p])
            if floor < below:
                here[some], floors[some] = i, floor
                some += 1
    for j in range(some):
        for p in range(plans):
            cheapest[p] = min(cheapest[p], weighted[j, p])
    there, few = np.empty(fit, np.int64), 0
    turned = np.empty((plans, fit))
    for f in range(fit if some else 0):
        k, floor = fitting[f], 0.0
        for p in range(plans):
            floor += cheapest[p] * others[k, p]
        if floor < below:
            there[few] = k
            for p in range(plans):
                turned[p, few] = others[k, p]
            few += 1
    best, at, beside = np.inf, -1, -1
    enough, energies = below, np.empty(few)
    for j in np.argsort(floors[: some if few else 0]):  # what is cheap early rules out the rest
        if floors[j] >= enough:
            break
        energies[:] = 0.0
        for p in range(plans):
            weight = weighted[j, p]
            for k in range(few):
                energies[k] += weight * turned[p, k]
        for k in range(few):
            if energies[k] < enough and _fits(parts[here[j]], rests[there[k]], bits, bounds):
                best, at, beside = energies[k], here[j], there[k]
                enough = best
    return best, at, beside


@_compiled
def joined(
    counts: Any, parts: Any, ends: Any, at: Any, weights: Any, bits: Any, bounds: Any, better: Any,
) -> Any:  # fmt: skip
    """Take the best chains of two axes at a time from lists, until nothing is better.

    Args:
        counts: of the lists of all axes, one below the other [chain, plan]; parts alike.
        ends: where each list ends.
        at: places to begin with; they are changed.
        better: share by which a pair is to be better.

    Returns: the energy; infinite where nothing fits.
    """
    axes = len(ends)
    energy, own, room = 0.0, weights.copy(), np.ones(parts.shape[1])
    for x in range(axes):
        own *= counts[at[x]]
        room *= parts[at[x]]
    for p in range(len(own)):
        energy += own[p]
    if not _fits(room, np.ones(parts.shape[1]), bits, bounds):
        energy = np.inf
    stale, moves = 0, axes * (axes - 1) // 2
    while True:
        for g in range(axes):
            for h in range(g + 1, axes):
                rest, taken = weights.copy(), bits.copy()
                for x in range(axes):
                    if x not in (g, h):
                        rest *= counts[at[x]]
                        taken *= parts[at[x]][bounds[0]]
                lists = []
                for x in (g, h):
                    start = ends[x - 1] if x else 0
                    lists.append((counts[start : ends[x]], parts[start : ends[x]]))
                found, i, k = pair(lists[0], lists[1], rest, taken, bounds, energy)
                stale += 1
                if i >= 0 and (energy == np.inf or found < energy * (1 - better)):
                    at[g], at[h] = i + (ends[g - 1] if g else 0), k + ends[h - 1]
                    energy, stale = found, 1
                if stale >= moves:
                    return energy


@_compiled
def _paths(length: Any, sizes: Any, keeps: Any, steps: Any, long: Any, many: Any) -> Any:
    """Count the different values of the kept components of a loop's paths.

    Args:
        sizes: of which so many `steps` are looked at; keeps alike.
        long: kinds of pieces, which are written; how many there are of each kind alike.
    """
    long[0], many[0], kinds = length, 1, 1
    while steps and not keeps[steps - 1]:
        steps -= 1
    for step in range(steps):
        tile, kept, full, left = sizes[step], keeps[step], 0, 0
        for kind in range(kinds):
            whole, rest = long[kind] // tile, long[kind] % tile
            full += many[kind] * (whole if kept else min(whole, 1))
            if rest and (kept or whole == 0):
                long[left], many[left] = rest, many[kind]
                left += 1
        if full:
            long[left], many[left] = tile, full
            left += 1
        kinds = left
    found = 0
    for kind in range(kinds):
        found += many[kind]
    return float(found)


@_compiled
def pieces(length: Any, sizes: Any, keeps: Any) -> Any:
    """Count the different values of the kept components of paths, as `paths.values`, by chain.

    Args:
        sizes: [chain, size].
        keeps: of as many sizes as the count looks at.
    """
    found, steps = np.zeros(len(sizes)), min(len(keeps), sizes.shape[1])
    long, many = np.empty(steps + 1, np.int64), np.empty(steps + 1, np.int64)
    for i in range(len(sizes)):
        found[i] = _paths(length, sizes[i], keeps, steps, long, many)
    return found


@_compiled
def counted(
    known: Any, at: Any, columns: Any, sizes: Any, lengths: Any, factors: Any, keeps: Any,
    parts: Any,
) -> Any:  # fmt: skip
    """Return what plans count of an axis; what they count for the first time is written, too.

    Args:
        known: [chain, plan]; not a number where it is not known, which is written where it can be.
        at: chains that are asked for, and columns: plans.
        sizes: of each chain and loop of the axis; lengths: of the loops.
        factors: of each plan and loop, as `Space.factors`; below 0 where it is no product.
        keeps: of each plan and loop, which sizes are kept.
        parts: what is bounded [chain, part].

    Returns: counts [chain, plan]; which plans have some that are not known; the chains' parts; how
    many counts are new.
    """
    made, steps = 0, min(keeps.shape[2], sizes.shape[2])
    found, missing = np.empty((len(at), len(columns))), np.zeros(len(columns), np.bool_)
    bounded = np.empty((len(at), parts.shape[1]))
    long, many = np.empty(steps + 1, np.int64), np.empty(steps + 1, np.int64)
    for i in range(len(at)):
        row = at[i]
        bounded[i] = parts[row]
        for k in range(len(columns)):
            column = columns[k]
            value = known[row, column]
            if np.isnan(value) and factors[column, 0] >= 0:
                value = 1.0
                for x in range(len(lengths)):
                    own = factors[column, x]
                    if own == 0:
                        kept = keeps[column, x]
                        own = _paths(lengths[x], sizes[row, x], kept, steps, long, many)
                    value *= own
                known[row, column] = value
                made += 1
            found[i, k] = value
            if np.isnan(value):
                missing[k] = True
    return found, missing, bounded, made


@_compiled
def _numbered(length: Any, sizes: Any, keeps: Any, number: Any, many: Any) -> Any:
    """Number groups of equal kept components, and count their members; return how many there are.

    Args:
        number: of each index's group, which is written.
        many: members of each group, which are written.
    """
    steps, highest, above = len(keeps), 1, length
    while steps and not keeps[steps - 1]:
        steps -= 1
    ends, places = np.zeros(steps, np.int64), np.zeros(steps, np.int64)
    times = np.ones(steps, np.int64)
    for step in range(steps):
        if keeps[step]:
            times[step] = -(-above // sizes[step])
        above = min(above, sizes[step])
        highest *= times[step]
    names, groups, at = np.full(highest, -1), 0, 0
    while at < length:  # a piece of the innermost cut at a time
        end, code, anew = length, 0, at == 0
        for step in range(steps):
            if at >= ends[step]:
                places[step] = 0 if anew else places[step] + 1
                ends[step], anew = min(at + sizes[step], end), True
            end = ends[step]
            if keeps[step]:
                code = code * times[step] + places[step]
        if names[code] < 0:
            names[code] = groups
            many[groups] = 0
            groups += 1
        group = names[code]
        many[group] += end - at
        number[at:end] = group
        at = end
    return groups


@_compiled
def meetings(
    classes: Any, lengths: Any, sizes: Any, long_keeps: Any, short_keeps: Any, counted: Any
) -> Any:
    """Count groups of outputs and of taps that touch a row together, as `grid.Grid.met`, by chain.

    Args:
        classes: of one loop, indexes that touch a row with the same of the other loop: indexes
            class by class, and where each class ends; the same of those of the other loop that it
            touches a row with.
        lengths: of the two loops.
        sizes: of the one loop, followed by those of the other [chain, size].
        long_keeps: of sizes of the one, whether their pieces are told apart; `short_keeps` alike.
        counted: 0 for pairs of groups, 1 for indexes of the one loop in them, 2 for the other's.
    """
    members, ends, others, stops = classes
    found, depth, wide = np.zeros(len(sizes)), len(long_keeps), lengths[1]
    long, of_long = np.empty(lengths[0], np.int64), np.empty(lengths[0], np.int64)
    short, of_short = np.empty(wide, np.int64), np.empty(wide, np.int64)
    met = np.full(lengths[0] * wide, -1, np.int32)
    seen, known = np.full(lengths[0], -1), np.full(wide, -1)
    touched, turn = np.empty(wide, np.int64), -1
    for i in range(len(sizes)):
        _numbered(lengths[0], sizes[i, :depth], long_keeps, long, of_long)
        _numbered(wide, sizes[i, depth:], short_keeps, short, of_short)
        start, first = 0, 0
        for c in range(len(ends)):
            turn, number = turn + 1, 0
            for k in range(first, stops[c]):
                group = short[others[k]]
                if known[group] != turn:
                    known[group], touched[number] = turn, group
                    number += 1
            for k in range(start, ends[c] if number else start):
                group = long[members[k]]
                if seen[group] != turn:
                    seen[group] = turn
                    for z in range(number):
                        if met[group * wide + touched[z]] != i:
                            met[group * wide + touched[z]] = i
                            if counted == 0:
                                found[i] += 1
                            else:
                                found[i] += of_long[group] if counted == 1 else of_short[touched[z]]
            start, first = ends[c], stops[c]
    return found


@_compiled
def _cut(length: Any, sizes: Any, starts: Any, ends: Any) -> Any:
    """Write where the pieces of nested cuts begin, and an end behind the last; return how many."""
    depth, number, at = len(sizes), 0, 0
    for level in range(depth):
        ends[level] = 0
    while at < length:
        end = length
        for level in range(depth):
            if at >= ends[level]:
                ends[level] = min(at + sizes[level], end)
            end = ends[level]
        starts[number] = at
        number += 1
        at = end
    starts[number] = length
    return number


@_compiled
def rows_of_pieces(table: Any, lengths: Any, sizes: Any, depth: Any, anew: Any) -> Any:
    """Add up a table over the pieces of nested cuts of two loops, chain by chain.

    Args:
        table: by a piece of one loop and one of the other; a piece [start, stop) of a loop of
            length n is at start (n + 1) + stop.
        lengths: of the two loops.
        sizes: of the one, followed by those of the other [chain, size].
        depth: how many are of the one.
        anew: whether the table has the one's pieces by their starts alone.
    """
    found = np.zeros(len(sizes))
    first, second = np.empty(lengths[0] + 1, np.int64), np.empty(lengths[1] + 1, np.int64)
    ends, places = np.empty(sizes.shape[1], np.int64), np.empty(lengths[1], np.int64)
    for i in range(len(sizes)):
        number = _cut(lengths[0], sizes[i, :depth], first, ends)
        many = _cut(lengths[1], sizes[i, depth:], second, ends)
        for k in range(many):
            places[k] = second[k] * (lengths[1] + 1) + second[k + 1]
        for j in range(number):
            at = first[j] if anew else first[j] * (lengths[0] + 1) + first[j + 1]
            for k in range(many):
                found[i] += table[at, places[k]]
    return found
