"""Compiled loops of the search with memories side by side: each equal to a plain count or try."""

from functools import partial
from itertools import combinations, product
from random import Random

import numpy as np
import pytest

from hwmodel.specs.files import load
from hwmodel.specs.hardware import Hardware
from hwmodel.tiling.options import SearchOptions, memories
from hwmodel.tiling.spatial import kernels
from hwmodel.tiling.spatial.bound import bound, closer
from hwmodel.tiling.spatial.choices import holdings
from hwmodel.tiling.spatial.grid import Classes
from hwmodel.tiling.spatial.mapper import mapped
from hwmodel.tiling.spatial.neighbours import _changed, _near
from hwmodel.tiling.spatial.numbered import Numbered
from hwmodel.tiling.spatial.parted import Parts
from hwmodel.tiling.spatial.rounded import _nearest
from hwmodel.tiling.spatial.space import GROUPS, Space
from hwmodel.tiling.spatial.tables import Table
from hwmodel.work.problem import Extents, Problem, Widths, Window


def paths(length, sizes, keeps):
    """The kept components of every index's path."""
    found = []
    for index in range(length):
        path, offset = [], index
        for size, kept in zip(sizes, keeps, strict=True):
            path += [offset // size] if kept else []
            offset %= size
        found.append(tuple(path))
    return found


def chain(draw, length, steps):
    sizes = [length]
    for _ in range(steps):
        sizes.append(draw.randint(1, sizes[-1]))
    return sizes[1:]


@pytest.mark.parametrize("seed", range(5))
def test_pieces_are_the_different_paths_of_a_loop(seed):
    draw = Random(seed)
    length, steps = draw.randint(1, 40), draw.randint(1, 5)
    keeps = [draw.random() < 0.6 for _ in range(steps)]
    chains = [chain(draw, length, steps) for _ in range(40)]
    found = kernels.pieces(length, np.array(chains), np.array(keeps))
    assert found.tolist() == [len(set(paths(length, sizes, keeps))) for sizes in chains]


@pytest.mark.parametrize("seed", range(5))
def test_meetings_are_pairs_of_groups_with_a_row_between_them(seed):
    draw = Random(seed)
    lengths = draw.randint(1, 12), draw.randint(1, 6)
    touching = [x for x in product(*map(range, lengths)) if draw.random() < 0.6] or [(0, 0)]
    keeps = [[draw.random() < 0.6 for _ in range(3)] for _ in lengths]
    chains = [[chain(draw, n, 3) for n in lengths] for _ in range(20)]
    together = np.zeros(lengths, bool)
    together[tuple(np.array(touching).T)] = True
    given = (
        tuple(Classes.of(together)), lengths, np.array([outs + taps for outs, taps in chains]),
        *map(np.array, keeps),
    )  # fmt: skip
    found = [kernels.meetings(*given, counted).tolist() for counted in range(3)]
    for i, sizes in enumerate(chains):
        groups = [paths(*each) for each in zip(lengths, sizes, keeps, strict=True)]
        met = {(groups[0][out], groups[1][tap]) for out, tap in touching}
        assert found[0][i] == len(met)
        assert found[1][i] == sum(groups[0].count(out) for out, _ in met)
        assert found[2][i] == sum(groups[1].count(tap) for _, tap in met)


def cut(start, stop, sizes):
    """The pieces of nested cuts."""
    found = [(start, stop)]
    for size in sizes:
        found = [(a, min(a + size, b)) for first, b in found for a in range(first, b, size)]
    return found


@pytest.mark.parametrize("anew", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_a_table_is_added_up_over_the_pieces_of_two_loops(seed, anew):
    draw = Random(seed)
    lengths = draw.randint(1, 20), draw.randint(1, 7)
    steps = draw.randint(1, 4), draw.randint(1, 4)
    one, other = ((n + 1) ** 2 for n in lengths)
    table = np.random.default_rng(seed).integers(0, 9, (one, other)).astype(float)
    chains = [[chain(draw, *each) for each in zip(lengths, steps, strict=True)] for _ in range(20)]
    given = np.array([outs + taps for outs, taps in chains]), steps[0], anew
    found = kernels.rows_of_pieces(table, lengths, *given)
    for number, (outs, taps) in zip(found, chains, strict=True):
        pairs = product(cut(0, lengths[0], outs), cut(0, lengths[1], taps))
        assert number == sum(
            table[a if anew else a * (lengths[0] + 1) + b, c * (lengths[1] + 1) + d]
            for (a, b), (c, d) in pairs
        )


def lists(draw, several):
    """Counts of 4 plans and 3 parts that are bounded, of so many chains for each axis."""
    number = np.random.default_rng(draw.randint(0, 10**6))
    return [(number.uniform(1, 2, (n, 4)), number.uniform(1, 3, (n, 3))) for n in several]


WEIGHTS = np.array([3.0, 1.0, 0.5, -0.2])
BOUNDS = np.array([0, 2, 1]), np.array([2, 3])  # parts 0 and 2 together, part 1
BITS = np.array([1.0, 2.0, 1.0])


def tried(chosen, most):
    """Energy of one chain of each axis; infinite where it does not fit."""
    counts = np.prod([counts for counts, _ in chosen], axis=0)
    parts = np.prod([parts for _, parts in chosen], axis=0)
    fits = parts[0] + 2 * parts[2] <= most[0] and parts[1] <= most[1]
    return float(counts @ WEIGHTS) if fits else np.inf


@pytest.mark.parametrize("seed", range(20))
def test_a_pair_is_the_cheapest_that_fits(seed):
    draw = Random(seed)
    first, second = lists(draw, (draw.randint(1, 15), draw.randint(1, 15)))
    most = np.array([draw.uniform(3, 20), draw.uniform(1, 8)])
    energies = {
        (i, k): tried([(x[0][at], x[1][at]) for x, at in ((first, i), (second, k))], most)
        for i, k in product(range(len(first[0])), range(len(second[0])))
    }
    least = min(energies.values())
    for below in (np.inf, 1.5 * least if least < np.inf else 50.0, 0.9 * least):
        found, i, k = kernels.pair(first, second, WEIGHTS, BITS, (*BOUNDS, most), below)
        if least < below:
            assert found == pytest.approx(least, rel=1e-12) == energies[i, k]
        else:
            assert (found, i, k) == (np.inf, -1, -1)


@pytest.mark.parametrize("seed", range(10))
def test_joined_lists_end_where_no_pair_is_better(seed):
    draw = Random(seed)
    several = lists(draw, [draw.randint(1, 6) for _ in range(4)])
    ends = np.cumsum([len(counts) for counts, _ in several])
    at = np.array([0, *ends[:-1]])
    most = np.array([400.0, 80.0])
    begun = tried([(counts[0], parts[0]) for counts, parts in several], most)
    together = [np.concatenate(some) for some in zip(*several, strict=True)]
    given = *together, ends, at, WEIGHTS, BITS, (*BOUNDS, most), 1e-12
    energy = kernels.joined(*given)
    places = at - np.array([0, *ends[:-1]])

    def here(changed):
        return tried([(c[i], p[i]) for (c, p), i in zip(several, changed, strict=True)], most)

    assert energy <= begun
    assert here(places) == pytest.approx(energy, rel=1e-12)
    for g, h in combinations(range(4), 2):
        for i, k in product(range(len(several[g][0])), range(len(several[h][0]))):
            changed = places.copy()
            changed[[g, h]] = i, k
            assert here(changed) >= energy * (1 - 1e-9)


@pytest.mark.parametrize("chip", ["eyeriss", "ascend-cube"])
def test_a_search_ends_alike_where_nothing_is_compiled(chip, monkeypatch):
    chosen = SearchOptions("optimal", "filter", "exact", "touched", "skipped", 32, transfers="both")
    window = Window(14, 1, 1, 1, 1)
    problem = Problem(Extents(2, 24, 20, 14, 14, 3, 3), window, window, Widths(8, 8, 8))
    energies = []
    for compiled in (True, False):
        monkeypatch.setattr("hwmodel.tiling.optimal.compiled._switch", [compiled])
        energies.append(mapped(problem, memories(load(Hardware, chip)), chosen)[1].energy)
    assert energies[0] == pytest.approx(energies[1], rel=1e-3)


def both(monkeypatch, ask):
    """What is answered compiled, and in arrays."""
    found = []
    for compiled in (True, False):
        monkeypatch.setattr("hwmodel.tiling.optimal.compiled._switch", [compiled])
        found.append(ask())
    return found


@pytest.mark.parametrize("seed", range(20))
def test_chains_near_others_and_near_sizes_are_those_of_arrays(seed, monkeypatch):
    draw = Random(seed)
    lengths = draw.choice([(1,), (7,), (4096,), (56, 3), (15, 60), (200, 300)])
    axis = tuple(tuple(chain(draw, n, draw.randint(1, 5))) for n in lengths)
    loops = tuple((length, draw.choice([1, 2, 5])) for length in lengths)
    for most in (50, 200, 600):
        near = both(monkeypatch, lambda most=most: _near.__wrapped__(loops, axis, most))
        assert near[0].tolist() == near[1].tolist()
    for loop, chosen in zip(loops, axis, strict=True):
        for sizes in (1, 2):
            asked = partial(_changed.__wrapped__, loop, chosen, sizes)
            assert np.array_equal(*both(monkeypatch, asked))
    sizes = tuple(tuple(draw.uniform(1, n) for n in chosen) for chosen in axis)
    for near_to in (sizes, axis):
        asked = partial(_nearest.__wrapped__, lengths, near_to, draw.choice([20, 300]))
        assert np.array_equal(*both(monkeypatch, asked))


@pytest.mark.parametrize("seed", range(5))
def test_rows_are_numbered_as_they_come(seed, monkeypatch):
    draw = Random(seed)
    some = [np.array([[draw.randint(1, 4) for _ in range(3)] for _ in range(300)])] * 2
    some += [np.array([[draw.randint(1, 9**5) for _ in range(3)] for _ in range(400)])]

    def numbered():
        rows = Numbered(3)
        return [rows.places(new).tolist() for new in some], rows.rows.tolist(), len(rows)

    found = both(monkeypatch, numbered)
    assert found[0] == found[1]
    every = [tuple(row) for row in np.concatenate(some).tolist()]
    first = list(dict.fromkeys(every))
    assert list(map(tuple, found[0][1])) == first
    places = [place for some_places in found[0][0] for place in some_places]
    assert places == [first.index(row) for row in every]


SPREAD = Problem(
    Extents(2, 24, 20, 14, 13, 3, 4), Window(14, 1, 1, 1, 1), Window(26, 2, 1, 1, 1),
    Widths(8, 8, 8), 3,
)  # fmt: skip


def spread(chip, stationary="best"):
    options = SearchOptions("optimal", stationary, "exact", "touched", "skipped", 32)
    return Space(SPREAD, memories(load(Hardware, chip)), options)


@pytest.mark.parametrize("chip", ["eyeriss", "ascend-cube", "v100-board"])
def test_tables_are_those_of_arrays(chip, monkeypatch):
    space = spread(chip)
    held = holdings("best", space.depth)

    def tables():
        found = []
        for group in range(len(GROUPS)):
            table = Table(space, group)
            for operands in (held[0], held[-1]):
                columns = table.columns(tuple(space.paid.terms(operands)))
                lengths = [getattr(SPREAD.extent, loop) for loop in GROUPS[group]]
                draw = Random(group)
                each = [
                    [x for n, k in zip(lengths, space.free(group), strict=True) for x in
                     chain(draw, n, k)] for _ in range(30)
                ]  # fmt: skip
                at = table.places(np.array(each))
                rows = table.rows(at, columns)
                found += [rows.counts.tolist(), rows.parts.tolist(), table.work]
                assert [table.chain(i) for i in at] == [
                    space.axis(group, np.array(x)) for x in each
                ]
        return found

    compiled, arrays = both(monkeypatch, tables)
    assert compiled == arrays


@pytest.mark.parametrize("chip", ["eyeriss", "ascend-cube", "v100-board"])
def test_a_closer_bound_is_that_of_all_the_budget(chip):
    space = spread(chip, "filter")
    given = space.problem, space.chip, space.options
    quick, whole = bound(*given, 2000), bound(*given)
    found = closer(*given, quick)
    assert found == pytest.approx(whole.energy, rel=1e-12)
    assert quick.energy <= found * (1 + 1e-12)
    assert closer(*given, whole) == found


@pytest.mark.parametrize("chip", ["eyeriss", "ascend-cube", "v100-board"])
def test_programmes_end_where_they_do_in_arrays(chip, monkeypatch):
    space = spread(chip)
    held = holdings("best", space.depth)
    compiled, arrays = both(monkeypatch, lambda: Parts.of(space, held, apart=True).sure())
    least = min(one.energy for one in arrays.values())
    assert min(one.energy for one in compiled.values()) == pytest.approx(least, rel=1e-9)
    for choice, one in arrays.items():
        assert compiled[choice].energy == pytest.approx(one.energy, rel=1e-6)
        if one.energy <= least * 1.05:
            for loop, sizes in one.sizes.items():
                assert compiled[choice].sizes[loop] == pytest.approx(sizes, rel=1e-3)
