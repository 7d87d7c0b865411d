"""The judge of the search: every integer tile chain of every dimension, counted and priced.

Chains are walked one by one; only their combinations are NumPy arrays. It knows no bound, no class
of tiles and no order; it shares `between` and `rates` with the search, which the simulator judges.
"""

from itertools import product

import numpy as np

from hwmodel.tiling.accesses import Cut, between, sums_moved
from hwmodel.tiling.pricing import level_energy, rates
from hwmodel.work.problem import Extents
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
            [
                (a, min(a + tile, stop))
                for start, stop in spans[-1]
                for a in range(start, stop, tile)
            ]
        )
    return spans


def rows_loaded(window, rule, outs, taps):
    return sum(len(simulator.needed(window, rule, o, t)) for o, t in product(outs, taps))


def most(window, rule, n, k, outs, taps):
    """Rows that a block of n outputs and k taps needs with nothing clipped, at its worst phase."""
    wide = rule._replace(padding="counted")
    phases = range(window.spread)
    whole = len(simulator.needed(window, rule, (0, outs), (0, taps)))
    needed = [
        simulator.needed(window, wide, (a, a + n), (b, b + k)) for a in phases for b in phases
    ]
    return min(max(map(len, needed)), whole)


def least_energy(problem, hardware, options):
    """The least memory energy of all tilings that fit, with one of them; None if none fits."""
    return min(least_energies(problem, hardware, options), key=lambda one: one[0], default=None)


def least_energies(problem, hardware, options):
    """The least memory energy of each choice of what is held under which something fits."""
    levels = len(hardware.levels) - 1
    n, rule = problem.extent, options.rule
    found = [chains(extent, levels) for extent in n]
    walked = [[cuts(extent, c) for c in cs] for extent, cs in zip(n, found, strict=True)]
    tiles = [np.array(cs) for cs in found]
    pieces = [np.array([[len(spans) for spans in w] for w in ws]) for ws in walked]
    rows, columns = (
        np.array(
            [
                [[rows_loaded(w, rule, *x) for x in zip(o, t, strict=True)] for t in taps]
                for o in outs
            ]
        )
        for w, outs, taps in (
            (problem.height, walked[3], walked[5]),
            (problem.width, walked[4], walked[6]),
        )
    )
    at = [i.ravel() for i in np.indices([len(cs) for cs in found])]
    room = {}
    for k, sums in product(range(levels), (False, True)):
        tile = Extents(*(t[i, k] for t, i in zip(tiles, at, strict=True)))
        room[k, sums] = fits(problem, hardware, k + 1, tile, options, sums)
    nest = []
    for k in range(levels + 1):
        numbers = (p[i, k] for p, i in zip(pieces, at, strict=True))
        nest.append(Cut(*numbers, rows[at[3], at[5], k], columns[at[4], at[6], k]))
    used = [
        len(simulator.met(w, rule, (0, outs), (0, taps)))
        for w, outs, taps in ((problem.height, n.HO, n.HF), (problem.width, n.WO, n.WF))
    ]
    nest.append(nest[-1]._replace(rows=used[0], columns=used[1]))
    best = []
    freedom = {"filter": "F", "either": "FI", "best": "FIO"}[options.stationary]
    for held in product(freedom, repeat=levels):
        if options.stationary == "either" and len(set(held)) > 1:
            continue
        fit = np.logical_and.reduce([room[k, holds == "O"] for k, holds in enumerate(held)])
        if not fit.any():
            continue
        energy = np.where(fit, energies(problem, hardware, nest, held, options), np.inf)
        i = int(np.argmin(energy))
        chosen = [
            Extents(*(int(t[j[i], k]) for t, j in zip(tiles, at, strict=True)))
            for k in range(levels)
        ]
        best.append((float(energy[i]), tuple(chosen), held))
    return best


def energies(problem, hardware, nest, held, options):
    energy, leaving = 0, 1
    for k, holds in enumerate((*held, "F")):
        asked = between(problem, nest[k], nest[k + 1], holds, leaving)
        leaving = sums_moved(nest[k], nest[k + 1], holds)
        sums, transfers = options.partial_sum_bits, options.transfers
        energy = energy + level_energy(asked, rates(problem, hardware, k, sums, transfers))
    return energy


def fits(problem, hardware, level, tile, options, sums):
    n, rule, bits = problem.extent, options.rule, problem.bits
    rows, columns = (
        np.array(
            [[most(w, rule, o + 1, t + 1, outs, taps) for t in range(taps)] for o in range(outs)]
        )
        for w, outs, taps in ((problem.height, n.HO, n.HF), (problem.width, n.WO, n.WF))
    )
    area = rows[tile.HO - 1, tile.HF - 1] * columns[tile.WO - 1, tile.WF - 1]
    size = {
        "I": bits.I * tile.N * tile.C * area,
        "F": bits.F * tile.M * tile.C * tile.HF * tile.WF,
        "O": max(bits.O, options.partial_sum_bits) * tile.N * tile.M * tile.HO * tile.WO,
    }
    room = np.ones(len(tile.N), bool)
    for buffer in hardware.levels[level].buffers:
        counted = [x for x in buffer.holds if x != "O" or sums or options.ofmap_space == "counted"]
        if buffer.capacity_bits is not None:
            room &= sum((size[x] for x in counted), 0) <= buffer.capacity_bits
    return room
