"""Pieces of chains of tiles, cut one by one, against the powers of sizes that are below them."""

from itertools import combinations
from math import exp, log

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwmodel.tiling.spatial.whole_pieces import factors
from tests.strategies import examples


def cut(lengths, tile):
    """The pieces that a tile cuts pieces into."""
    for length in lengths:
        yield from [tile] * (length // tile)
        if length % tile:
            yield length % tile


@st.composite
def chains(draw):
    """A loop, falling tiles, and what is said of these: nothing that is not so."""
    length = draw(st.integers(1, 60))
    tiles, above = [], length
    for _ in range(draw(st.integers(1, 4))):
        above = draw(st.integers(1, above) | st.just(above) | st.just(-(-above // 2)))
        tiles.append(above)
    sizes = [
        (draw(st.sampled_from((1, t, draw(st.integers(1, t))))),
         draw(st.sampled_from((t, length, draw(st.integers(t, length))))))
        for t in tiles
    ]  # fmt: skip
    times = {}
    for outer, inner in combinations(range(-1, len(tiles)), 2):
        if draw(st.booleans()):
            often = -(-(tiles[outer] if outer >= 0 else length) // tiles[inner])
            least = draw(st.sampled_from((1, often, draw(st.integers(1, often)))))
            times[inner, outer] = least, draw(st.sampled_from((often, often + 2, float("inf"))))
    near = [log(draw(st.integers(1, length))) for _ in tiles] if draw(st.booleans()) else None
    return length, tiles, sizes, times, near


@settings(max_examples=examples(2000), deadline=None)
@given(chains())
def test_powers_are_below_the_pieces_of_every_chain(case):
    length, tiles, sizes, times, near = case
    found, full = factors(length, sizes, times, near)
    pieces = [length]
    for at, (tile, (constant, slopes)) in enumerate(zip(tiles, found, strict=True)):
        pieces = list(cut(pieces, tile))
        least = constant + sum(slope * log(tiles[i]) for i, slope in slopes)
        assert exp(least) <= len(pieces) * (1 + 1e-9)
        assert full[at] * length <= tile * pieces.count(tile) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("length", "tiles", "times", "pieces"),
    [
        (768, [500], {(0, -1): (2, 2)}, 2),  # once and a half, rounded up
        (768, [768, 500], {(0, -1): (1, 1), (1, 0): (2, 2)}, 2),
        (1000, [100, 60], {(1, 0): (2, 2)}, 20),  # twice in each of ten
    ],
)
def test_pieces_are_rounded_up_by_hand(length, tiles, times, pieces):
    """Where it is sure that all lies in full pieces of the tile further out."""
    found, _ = factors(length, [(tile, tile) for tile in tiles], times)
    constant, slopes = found[-1]
    assert exp(constant + sum(slope * log(tiles[i]) for i, slope in slopes)) == pytest.approx(
        pieces
    )


def test_rests_are_not_rounded_up_by_hand():
    """13 under 9 and 5 is 9 + 4, then 5 + 4 + 4: three, not twice two."""
    (_, (constant, slopes)), full = factors(13, [(9, 9), (5, 5)], {})
    least = exp(constant + sum(slope * log((9, 5)[i]) for i, slope in slopes))
    assert 13 / 5 < least < 3
    assert full == pytest.approx([9 / 13, 5 / 13])
