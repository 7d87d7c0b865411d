"""The judge of the search: every integer tile chain of every dimension, counted and priced.

Chains are walked one by one; only their combinations are NumPy arrays. It knows no bound, no class
of tiles and no order; it shares `between` and `rates` with the search, which the simulator judges.
"""

from itertools import product

import numpy as np

from hwmodel.accesses import Cut, between, sums_moved
from hwmodel.pricing import level_energy, rates
from hwmodel.problem import Extents
from tests import simulator


def chains(extent, levels):
    """All falling integer chains of `levels` tiles within `extent`."""
    found = [()]
    for _ in range(levels):
        found = [(*c, t) for c in found for t in range(1, (c[-1] if c else extent) + 1)]
    return found


def cuts(extent, chain):
    """The spans of a dimension's pieces at every level, walked."""
    spans = [[(0, extent)]]
    for tile in chain:
        spans.append(
            [(a, min(a + tile, stop)) for start, stop in spans[-1] for a in range(start, stop, tile)]
        )
    return spans


def rows_loaded(window, rule, outs, taps):
    return sum(len(simulator.needed(window, rule, o, t)) for o, t in product(outs, taps))


def most(window, rule, outs, taps, extent_out, extent_tap):
    """The most rows any block of a size needs if nothing is beyond the borders but padding."""
    wide = rule._replace(padding="counted")
    whole = len(simulator.needed(window, rule, (0, extent_out), (0, extent_tap)))
    found = max(
        len(simulator.needed(window, wide, (a, a + outs), (0, taps)))
        for a in range(window.spread)
    )
    shifted = max(
        len(simulator.needed(window, wide, (a, a + outs), (b, b + taps)))
        for a in range(window.spread)
        for b in range(window.spread)
    )
    return min(max(found, shifted), whole)


def least_energy(problem, hardware, options):
    """The least memory energy of all tilings that fit, with one of them; None if none fits."""
    levels = len(hardware.levels) - 1
    n, rule = problem.extent, options.rule
    found = [chains(extent, levels) for extent in n]
    walked = [[cuts(extent, c) for c in cs] for extent, cs in zip(n, found, strict=True)]
    tile = [np.array(cs) for cs in found]
    count = [np.array([[len(level) for level in w] for w in ws]) for ws in walked]
    height, width = (
        np.array(
            [
                [[rows_loaded(window, rule, o[k], t[k]) for k in range(levels + 1)] for t in walked[tap]]
                for o in walked[out]
            ]
        )
        for window, out, tap in ((problem.height, 3, 5), (problem.width, 4, 6))
    )
    index = np.meshgrid(*(np.arange(len(cs)) for cs in found), indexing="ij")
    index = [i.ravel() for i in index]
    keep = np.ones(len(index[0]), bool)
    for k in range(levels):
        t = Extents(*(tile[d][index[d], k] for d in range(7)))
        keep &= fits(problem, hardware, k + 1, t, options)
    if not keep.any():
        return None
    index = [i[keep] for i in index]
    cut = [
        Cut(
            *(count[d][index[d], k] for d in range(7)),
            height[index[3], index[5], k],
            width[index[4], index[6], k],
        )
        for k in range(levels + 1)
    ]
    used = [
        len(simulator.met(window, rule, (0, outs), (0, taps)))
        for window, outs, taps in ((problem.height, n.HO, n.HF), (problem.width, n.WO, n.WF))
    ]
    cut.append(cut[-1]._replace(rows=used[0], columns=used[1]))
    best = None
    for held in product("FIO" if options.stationary == "best" else "F", repeat=levels):
        energy, leaving = 0, 1
        for k, holds in enumerate((*held, "F")):
            asked = between(problem, cut[k], cut[k + 1], holds, leaving)
            leaving = sums_moved(cut[k], cut[k + 1], holds)
            price = rates(problem, hardware, k, options.partial_sum_bits)
            energy = energy + level_energy(asked, price)
        i = int(np.argmin(energy))
        if best is None or energy[i] < best[0]:
            chosen = [Extents(*(int(tile[d][index[d][i], k]) for d in range(7))) for k in range(levels)]
            best = float(energy[i]), tuple(chosen), held
    return best


def fits(problem, hardware, level, tile, options):
    n, rule, bits = problem.extent, options.rule, problem.bits
    rows, columns = (
        np.array([[most(w, rule, o, t, outs, taps) for t in range(1, taps + 1)] for o in range(1, outs + 1)])
        for w, outs, taps in ((problem.height, n.HO, n.HF), (problem.width, n.WO, n.WF))
    )
    size = {
        "I": bits.I * tile.N * tile.C * rows[tile.HO - 1, tile.HF - 1] * columns[tile.WO - 1, tile.WF - 1],
        "F": bits.F * tile.M * tile.C * tile.HF * tile.WF,
        "O": max(bits.O, options.partial_sum_bits) * tile.N * tile.M * tile.HO * tile.WO,
    }
    room = np.ones(len(tile.N), bool)
    for buffer in hardware.levels[level].buffers:
        counted = [x for x in buffer.holds if x != "O" or options.ofmap_space == "counted"]
        if buffer.capacity_bits is not None:
            room &= sum(size[x] for x in counted) <= buffer.capacity_bits
    return room
