"""Tiles of their own for each operand: the bound against all such tilings of tiny problems."""

from itertools import pairwise, permutations, product
from math import ceil

from hypothesis import given, settings
from hypothesis import strategies as st

from hwmodel.tiling.optimal.search import Options, optimal
from hwmodel.tiling.options import Memories, Memory, MemoryLevel, SearchOptions
from hwmodel.tiling.spatial.uneven import uneven
from hwmodel.work.problem import Extents, Problem, Widths, Window
from tests.strategies import examples, prices

OTHERS = {"I": (1,), "F": (0,), "O": (2,)}  # of N, M, C, those that do not index an operand
INDEXED = {"I": (0, 2), "F": (1, 2), "O": (0, 1)}


def pieces(length, tiles):
    """Pieces of a loop under tiles that nest, walked piece by piece."""
    found = [length]
    for tile in tiles:
        found = [min(tile, p - i) for p in found for i in range(0, p, tile)]
    return len(found)


def visits(x, extent, chain):
    """How often each element of an operand comes under a chain of its tiles (N, M, C)."""
    (d,) = OTHERS[x]
    return pieces(extent[d], [tile[d] for tile in chain])


def size(x, shape):
    a, b = INDEXED[x]
    return shape[a] * shape[b]


def energy(extent, bits, memories, own, last, transfers):
    """All that is paid, memory by memory, of matrix products.

    Args:
        own: tiles of each operand, the outermost level first.
        last: the innermost tile, by which MACs are fed.
    """
    total, wide = 0.0, max(8, bits["O"])
    for x in "IF":
        for i, memory in enumerate(memories):
            mine = own[x][: i + 1] if i + 1 < len(memories) else (*own[x], last)
            often = visits(x, extent, mine)
            moved = size(x, extent) * often * bits[x]
            total += moved * memory.read_energy_per_bit
            if transfers == "both" and i + 1 < len(memories):
                total += moved * memories[i + 1].write_energy_per_bit
    sums = size("O", extent)
    for i, memory in enumerate(memories):
        arrive = visits("O", extent, own["O"][: i + 1])
        begin = visits("O", extent, own["O"][:i])
        going = (arrive - 1) * wide + bits["O"]
        total += sums * going * memory.write_energy_per_bit
        total += sums * (arrive - begin) * wide * memory.read_energy_per_bit
        if transfers == "both" and i + 1 < len(memories):
            below = memories[i + 1]
            total += sums * going * below.read_energy_per_bit
            back = below.read_energy_per_bit + below.write_energy_per_bit
            total += sums * (arrive - begin) * wide * back
    return total


def least(extent, bits, memories, transfers):
    """The least energy of all tilings in which operands have tiles of their own; None: none fits."""
    depth, best, wide = len(memories) - 1, None, max(8, bits["O"])
    shapes = list(product(*(range(1, n + 1) for n in extent)))
    under = {
        s: [t for t in shapes if all(a <= b for a, b in zip(t, s, strict=True))] for s in shapes
    }

    def chains(levels):
        """(I, F, O) tiles of each level, each operand's below its own one level further out."""
        if not levels:
            return [()]
        found = []
        for before in chains(levels - 1):
            outer = before[-1] if before else (extent,) * 3
            found += [(*before, three) for three in product(*(under[shape] for shape in outer))]
        return found

    for chain in chains(depth):
        for orders in product(permutations(range(3)), repeat=depth):
            nested = all(
                three[inner] in under[three[outer]]
                for three, order in zip(chain, orders, strict=True)
                for outer, inner in pairwise(order)
            )
            if not nested:
                continue
            fits = all(
                sum(
                    size(x, three[k]) * (wide if x == "O" else bits[x])
                    for k, x in enumerate("IFO")
                    if x != "O" or order[-1] != 2
                )
                <= memory.capacity_bits
                for three, order, memory in zip(chain, orders, memories[1:], strict=True)
            )
            if fits:
                own = {x: tuple(three[k] for three in chain) for k, x in enumerate("IFO")}
                last = chain[-1][orders[-1][-1]]
                paid = energy(extent, bits, memories, own, last, transfers)
                best = paid if best is None else min(best, paid)
    return best


def chip(*memories):
    return Memories(tuple(MemoryLevel(memory.name, (memory,)) for memory in memories))


def asked(transfers):
    return SearchOptions("optimal", "best", "exact", "touched", "skipped", 8, transfers)


sizes = st.tuples(*[st.integers(1, 4)] * 3)


@settings(max_examples=examples(60), deadline=None)
@given(sizes, st.tuples(*[st.sampled_from((1, 4, 8))] * 3), st.data())
def test_the_bound_is_below_all_tilings_with_tiles_of_their_own(extent, widths, data):
    """And these are no dearer than the best with shared tiles, which they include."""
    transfers = data.draw(st.sampled_from(("upper", "both")))
    depth = data.draw(st.integers(1, 2)) if extent[0] * extent[1] * extent[2] <= 4 else 1
    room = [data.draw(st.integers(24, 200)) for _ in range(depth)]
    paid = [(data.draw(prices), data.draw(prices)) for _ in range(depth + 1)]
    memories = [
        Memory(f"L{i}", ("I", "F", "O"), bits, *rates)
        for i, (bits, rates) in enumerate(zip([None, *room], paid, strict=True))
    ]
    bits = dict(zip("IFO", widths, strict=True))
    best = least(extent, bits, memories, transfers)
    if best is None:
        return
    n, m, c = extent
    problem = Problem(Extents(n, m, c, 1, 1, 1, 1), Window(1), Window(1), Widths(*widths))
    places = chip(*memories)
    assert uneven(problem, places, asked(transfers)) <= best * (1 + 1e-9)
    shared = optimal(problem, places, Options(8, "best", transfers=transfers)).certificate
    assert best <= shared.energy * (1 + 1e-9)


def test_what_tiles_of_their_own_gain_by_hand():
    """4 x 4 x 1: sums at once, so I and F alone take room, 3 words of 8 bit.

    Shared tiles of 3 words: N 2, M 1 (or 1, 2): with I held I comes once and F for each block of N,
    4 + 4 * 2 = 12 words. Tiles of their own: I 2 words, F 1: the same. With room for 5 words I stays
    whole, 4, beside one word of F: 8, which is all there is.
    """
    problem = Problem(Extents(4, 4, 1, 1, 1, 1, 1), Window(1), Window(1), Widths(8, 8, 8))
    for words, moved in ((3, 12), (5, 8)):
        places = chip(
            Memory("far", ("I", "F", "O"), None, 1.0, 0.0),
            Memory("near", ("I", "F", "O"), 8 * words, 0.0, 0.0),
        )
        bits = {"I": 8, "F": 8, "O": 8}
        memories = [level.buffers[0] for level in places.levels]
        assert least((4, 4, 1), bits, memories, "upper") == 8 * moved
        bound = uneven(problem, places, asked("upper"))
        assert ceil(bound) <= 8 * moved and bound >= 0.6 * 8 * moved
