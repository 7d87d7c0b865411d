import math
from dataclasses import replace
from importlib.util import find_spec
from itertools import pairwise
from math import comb, prod

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hwmodel.errors import Infeasible
from hwmodel.specs.files import load
from hwmodel.specs.hardware import Hardware
from hwmodel.tiling.accesses import Mapping, Traffic, traffic
from hwmodel.tiling.level_by_level import candidates, level_by_level
from hwmodel.tiling.optimal.best_first import Search
from hwmodel.tiling.optimal.bounds import space
from hwmodel.tiling.optimal.budget import NEST, Budget
from hwmodel.tiling.optimal.chains import best_within
from hwmodel.tiling.optimal.dual import added_weights, shifted
from hwmodel.tiling.optimal.listing import listed
from hwmodel.tiling.optimal.nodes import child, children, orders, root, term, weights_below
from hwmodel.tiling.optimal.search import Options, optimal
from hwmodel.tiling.optimal.tables import Classes
from hwmodel.tiling.pricing import added, level_energy, memory_energy, rates
from hwmodel.tiling.rows import TOUCHED
from hwmodel.work.problem import Extents, Problem, Widths, Window
from tests.exhaustive import least_energy
from tests.strategies import chip, chips, examples, row_rules, small_problems


def tilings(sizes, levels=3):
    return prod(comb(n + levels - 1, levels) for n in sizes)


choices = st.builds(
    Options,
    partial_sum_bits=st.sampled_from((1, 4, 16)),
    stationary=st.sampled_from(("filter", "either", "best")),
    rule=row_rules,
    ofmap_space=st.sampled_from(("held", "counted")),
    transfers=st.sampled_from(("upper", "both")),
)


ways = pytest.mark.parametrize(
    "compiled",
    [
        pytest.param(True, marks=pytest.mark.skipif(not find_spec("numba"), reason="an extra")),
        False,
    ],
)


@pytest.fixture
def as_asked(monkeypatch):
    """Lists are made by the compiled walk, or in arrays."""
    return lambda compiled: monkeypatch.setattr(
        "hwmodel.tiling.optimal.compiled._switch", [compiled]
    )


@ways
@settings(max_examples=examples(500), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data(), st.integers(2, 4), choices)
def test_the_optimum_is_that_of_every_integer_chain(as_asked, compiled, data, levels, options):
    as_asked(compiled)
    problem = data.draw(small_problems(lambda sizes: tilings(sizes, levels - 1)))
    hardware = data.draw(chips(levels))
    judged = least_energy(problem, hardware, options)
    if judged is None:
        with pytest.raises(Infeasible):
            optimal(problem, hardware, options)
        return
    mapping, certificate = optimal(problem, hardware, options)
    counted = traffic(problem, mapping, "exact", options.rule)
    sums, transfers = options.partial_sum_bits, options.transfers
    priced = memory_energy(problem, counted, hardware, sums, transfers)
    assert certificate.energy == priced
    if options.rule.rows == "bounding" and not certificate.proved:  # its bounds are loose
        assert certificate.lower_bound * (1 - 1e-12) <= judged[0] <= certificate.energy
        return
    assert certificate.proved and certificate.gap == 0
    assert certificate.energy == pytest.approx(judged[0], rel=1e-12)


@settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data(), st.integers(2, 4), choices, st.sampled_from((0, 2, 20, 1000)))
def test_more_freedom_is_never_worse_however_early_a_search_ends(data, levels, options, nests):
    problem = data.draw(small_problems(lambda sizes: tilings(sizes, levels - 1)))
    hardware = data.draw(chips(levels))
    options = replace(options, budget=nests * NEST, ofmap_space="held")
    try:
        greedy = level_by_level(problem, hardware)
        found = [
            optimal(problem, hardware, replace(options, stationary=stationary))
            for stationary in ("filter", "either", "best")
        ]
    except Infeasible:
        return
    energies = [certificate.energy for _, certificate in found]
    if options.rule.padding == "skipped":  # counted rows take room that the greedy search saves
        counted = traffic(problem, greedy, "exact", options.rule)
        energies.insert(
            0,
            memory_energy(problem, counted, hardware, options.partial_sum_bits, options.transfers),
        )
    for less, more in pairwise(energies):
        assert more <= less * (1 + 1e-12)


@pytest.mark.skipif(not find_spec("numba"), reason="an extra")
@settings(max_examples=examples(200), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data(), st.integers(2, 4), choices)
def test_as_cheap_a_tiling_with_and_without_compiler(as_asked, data, levels, options):
    """Not always the same one: of equal ones others may be met first (docs/tiling.md)."""
    problem = data.draw(small_problems(lambda sizes: tilings(sizes, levels - 1)))
    hardware = data.draw(chips(levels))
    found = []
    for compiled in (True, False):
        as_asked(compiled)
        try:
            found.append(optimal(problem, hardware, options))
        except Infeasible:
            return
    if all(certificate.proved for _, certificate in found):
        energies = [certificate.energy for _, certificate in found]
        assert energies[0] == pytest.approx(energies[1], rel=2e-13)


@ways
def test_a_floor_that_is_rounded_up_hides_no_tiling(as_asked, compiled):
    """All in one piece but images, halved at the last level, costs 6e-7 less than the next best."""
    as_asked(compiled)
    window = Window(56, 1, 1, 3, 3)
    problem = Problem(Extents(256, 1, 1, 56, 56, 7, 7), window, window, Widths(1, 1, 16), 96)
    hardware = load(Hardware, "ascend")
    _, certificate = optimal(problem, hardware)
    n = problem.extent
    halved = Mapping((n, n, n._replace(N=128)), ("F",) * 3)
    priced = memory_energy(problem, traffic(problem, halved, "exact"), hardware, 32)
    assert certificate.energy <= priced * (1 + 1e-12)


def linear(N, M, C, bits=(1, 8, 1)):
    window = Window(1)
    return Problem(Extents(N, M, C, 1, 1, 1, 1), window, window, Widths(*bits))


def test_the_smallest_tile_of_each_piece_count_is_not_enough():
    """9 filters by 6 and 3 are 3 pieces; by 5, the smallest tile that halves them, and 3 are 4."""
    problem, hardware = linear(1, 9, 1), chip((49, 25), [(100, 100), (10, 10), (1, 1)])
    mapping, certificate = optimal(problem, hardware)
    assert [tile.M for tile in mapping.tiles] == [6, 3]
    assert certificate.energy == pytest.approx(least_energy(problem, hardware, Options())[0])
    thinned = [
        energy_of(problem, hardware, (a, b))
        for a in candidates(9)
        for b in candidates(9)
        if b <= min(a, 3) and a <= 6
    ]
    assert certificate.energy < min(thinned)


def energy_of(problem, hardware, filters):
    tiles = tuple(problem.extent._replace(M=int(m)) for m in filters)
    counted = traffic(problem, Mapping(tiles, ("F",) * len(tiles)), "exact")
    return memory_energy(problem, counted, hardware, 32)


layers = st.builds(
    lambda n, m, c, size, k, step, pad: conv(n, m, c, size, k, step, min(pad, k - 1)),
    *[st.integers(1, 9)] * 3,
    st.integers(5, 9),
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(0, 2),
)


def conv(n, m, c, size, k, step, pad, width=None):
    out = (size + 2 * pad - k) // step + 1
    columns = width or size
    outs = (columns + 2 * pad - k) // step + 1
    windows = Window(size, step, 1, pad, pad), Window(columns, step, 1, pad, pad)
    return Problem(Extents(n, m, c, out, outs, k, k), *windows, Widths(8, 8, 8))


ENERGIES = [(200.0, 200.0), (6.0, 6.0), (2.0, 2.0), (1.0, 1.0)]
stationaries = st.sampled_from(("filter", "best"))


@settings(max_examples=examples(30), deadline=None)
@given(
    layers, st.lists(st.integers(2_000, 60_000), min_size=3, max_size=3), stationaries, st.data()
)
def test_energy_never_rises_with_a_capacity(problem, bits, stationary, data):
    options = Options(stationary=stationary)
    level, more = data.draw(st.integers(0, 2)), data.draw(st.integers(0, 50_000))
    larger = [size + more * (i == level) for i, size in enumerate(bits)]
    before, after = (
        optimal(problem, chip(sizes, ENERGIES), options).certificate for sizes in (bits, larger)
    )
    assert before.proved and after.proved
    assert after.energy <= before.energy * (1 + 1e-12)


@settings(max_examples=examples(30), deadline=None)
@given(layers, st.lists(st.integers(2_000, 60_000), min_size=3, max_size=3), stationaries)
def test_moves_at_least_every_element_once(problem, bits, stationary):
    options = Options(
        stationary=stationary, budget=100 * NEST
    )  # holds for every tiling, proved or not
    mapping, _ = optimal(problem, chip(bits, ENERGIES), options)
    top = traffic(problem, mapping, "exact")[0]
    whole = Mapping((problem.extent,), ("F",))
    once = traffic(problem, whole, "exact")[0]
    assert all(count >= least for count, least in zip(top, once, strict=True))


@settings(max_examples=examples(20), deadline=None)
@given(layers, st.integers(5, 20), st.lists(st.integers(2_000, 60_000), min_size=3, max_size=3))
def test_rows_and_columns_may_change_places(problem, width, bits):
    n, h = problem.extent, problem.height
    problem = conv(n.N, n.M, n.C, h.size, n.HF, h.step, h.pad, width=max(width, n.HF))
    n = problem.extent
    turned = Problem(
        n._replace(HO=n.WO, WO=n.HO, HF=n.WF, WF=n.HF), problem.width, problem.height, problem.bits
    )
    energies = [optimal(p, chip(bits, ENERGIES)).certificate.energy for p in (problem, turned)]
    assert energies[0] == pytest.approx(energies[1], rel=1e-12)


@settings(max_examples=examples(20), deadline=None)
@given(layers, st.sampled_from((0.125, 2, 1024)), st.integers(2, 7))
def test_scales_with_all_access_energies_and_with_groups(problem, factor, groups):
    bits = (40_000, 9_000, (3_000, 3_000, 3_000))
    scaled = [(read * factor, write * factor) for read, write in ENERGIES]
    plain, dear = (optimal(problem, chip(bits, e)) for e in (ENERGIES, scaled))
    assert plain.mapping == dear.mapping
    assert dear.certificate.energy == plain.certificate.energy * factor
    many = Problem(problem.extent, problem.height, problem.width, problem.bits, groups)
    assert optimal(many, chip(bits, ENERGIES)).certificate.energy == pytest.approx(
        groups * plain.certificate.energy, rel=1e-12
    )


def test_equal_problems_get_equal_tilings():
    problem, hardware = conv(4, 30, 20, 14, 3, 1, 1), chip((60_000, 20_000, 5_000), ENERGIES)
    assert optimal(problem, hardware) == optimal(problem, hardware)


def test_reads_and_writes_have_their_own_price():
    """C4: a reader at 1.0 and a writer at 1.2 make 100 reads and 50 writes cost 160, not 180."""
    asked = Traffic(I_reads=60, F_reads=40, O_partial_reads=0, O_partial_writes=0, O_writes=50)
    hardware = chip((8,), [(1.0, 1.2), (1.0, 1.2)])
    priced = level_energy(asked, rates(linear(1, 1, 1, (1, 1, 1)), hardware, 0, 32))
    assert priced == pytest.approx(160)
    sums = Traffic(0, 0, O_partial_reads=3, O_partial_writes=5, O_writes=0)
    priced = level_energy(sums, rates(linear(1, 1, 1, (1, 1, 1)), hardware, 0, 32))
    assert priced == pytest.approx(32 * (3 * 1.0 + 5 * 1.2))
    wide = level_energy(sums, rates(linear(1, 1, 1, (1, 1, 48)), hardware, 0, 32))
    assert wide == pytest.approx(48 * (3 * 1.0 + 5 * 1.2))  # never narrower than O


def test_energies_round_alike_as_numbers_and_as_arrays_under_every_python():
    """2^53 + 1 is 2^53 in double precision, and so is that + 1; Python 3.12's sum() says 2^53 + 2."""
    price, asked = Traffic(*(1.0,) * 5), Traffic(2**53, 1, 0, 0, 1)
    arrays = Traffic(*(np.array([number]) for number in asked))
    assert level_energy(asked, price) == level_energy(arrays, price)[0] == 2.0**53
    assert added([2.0**53, 1.0, 1.0]) == 2.0**53


def test_what_cannot_fit_is_named():
    with pytest.raises(Infeasible) as error:
        optimal(linear(4, 4, 4, (8, 8, 8)), chip((100, 12), ENERGIES[:3]))
    assert (error.value.level, error.value.operand) == ("L2", "I and F")
    assert error.value.missing_bits == 4


@pytest.mark.parametrize("stationary", ("filter", "best"))
def test_a_limit_is_reported_with_a_gap(stationary):
    problem, hardware = conv(4, 31, 23, 14, 3, 1, 1), chip((60_000, 20_000, 5_000), ENERGIES)
    exact = optimal(problem, hardware, Options(stationary=stationary)).certificate
    _, short = optimal(problem, hardware, Options(stationary=stationary, limit=1))
    assert short.lower_bound <= exact.energy <= short.energy
    assert short.proved == (short.gap == 0)
    if stationary == "filter":  # another order's first tiling happens to be the best one
        assert exact.proved and not short.proved and 0 < short.gap < 1


@pytest.mark.parametrize("padding", (600, 6000))
def test_lists_that_lead_to_no_tiling_are_paid_for(padding, monkeypatch):
    """Of a long padded axis nests take long to meet: few of them spend what many others would."""
    met = []
    monkeypatch.setattr(
        "hwmodel.tiling.optimal.best_first.best_within", lambda *a: met.append(a) or best_within(*a)
    )
    problem, hardware = conv(1, 8, 3, 300, 3, 1, padding), chip((10**7, 10**6, 10**5), ENERGIES)
    _, certificate = optimal(problem, hardware, Options(budget=200 * NEST))
    assert len(met) < 150  # the rest of the budget is paid for lists
    assert certificate.lower_bound <= certificate.energy
    assert not certificate.proved and certificate.gap < 1e-3


def test_huge_loops_end():
    problem, hardware = linear(2**31, 2**31, 2**31), chip((10**6, 10**5), ENERGIES[:3])
    mapping, certificate = optimal(problem, hardware)
    assert certificate.lower_bound <= certificate.energy < float("inf")
    assert certificate.space > 10**50
    assert traffic(problem, mapping, "exact")[0].O_writes == 2**62


def many_taps(N, M, taps):
    """Most searches of the weight gradients of large images meet many nests in vain at first."""
    window = Window(taps, 1, 1, 1, 1, 1)
    return Problem(Extents(N, M, 1, 3, 3, taps, taps), window, window, Widths(32, 32, 32))


@pytest.mark.parametrize("problem", [many_taps(64, 64, 150), many_taps(3, 16, 298)])
def test_a_search_that_is_cut_short_ends_near_its_bound(problem):
    """No tiling of the space is below the bound; what stood in for one was up to four times it."""
    _, short = optimal(problem, load(Hardware, "ascend"), Options(budget=5 * NEST))
    _, whole = optimal(problem, load(Hardware, "ascend"))
    assert whole.proved and not short.proved
    assert short.lower_bound <= whole.energy <= short.energy < 1.02 * whole.energy


def test_one_search_at_a_time_holds_what_is_open(monkeypatch):
    """What one search holds is bounded by its budget; of several, one is the most at a time.

    With 2^31 channels what is open took 400 MB for each of two searches.
    """
    begun, several = [], []

    class Watched(Search):
        def run(self, left):
            several.append(sum(bool(other._open) for other in begun))
            begun.append(self)
            super().run(left)

    monkeypatch.setattr("hwmodel.tiling.optimal.search.Search", Watched)
    problem, hardware = conv(16, 30, 170, 61, 3, 1, 1), chip((60_000, 20_000, 5_000), ENERGIES)
    options = Options(budget=20 * NEST, stationary="best")
    assert not optimal(problem, hardware, options).certificate.proved
    assert len(begun) > 2 and not any(several)


@settings(max_examples=examples(30), deadline=None)
@given(st.data(), choices)
def test_a_search_that_has_nothing_to_spend_still_ends_with_a_tiling(data, options):
    """Truth: all tilings. What is left then is what single changes of tiles lead to."""
    problem = data.draw(small_problems(lambda sizes: tilings(sizes, 2)))
    hardware = data.draw(chips(3))
    judged = least_energy(problem, hardware, options)
    if judged is None:
        return
    mapping, certificate = optimal(problem, hardware, replace(options, budget=0))
    counted = traffic(problem, mapping, "exact", options.rule)
    priced = memory_energy(problem, counted, hardware, options.partial_sum_bits, options.transfers)
    assert certificate.energy == priced
    assert certificate.lower_bound <= judged[0] * (1 + 1e-12)
    assert judged[0] <= certificate.energy * (1 + 1e-12)


@pytest.mark.skipif(not find_spec("numba"), reason="an extra")
@settings(max_examples=examples(200), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data(), st.integers(2, 4), choices)
def test_nodes_are_bounded_alike_one_by_one_and_all_at_once(data, levels, options):
    """The compiled bounds of many nodes are those of each, at every depth of the search.

    But for rows that are looked at tile by tile one by one, which may be more.
    """
    problem = data.draw(small_problems(lambda sizes: tilings(sizes, levels - 1)))
    hardware = data.draw(chips(levels))
    given = options.rule, options.ofmap_space, options.transfers, options.limit, Budget(10**9)
    classes = Classes(space(problem, hardware, options.partial_sum_bits, *given))
    held = tuple(data.draw(st.sampled_from("FIO")) for _ in range(levels - 1))
    (order,) = orders(classes.space, [held])
    node = root(classes, order, {})
    for level in order.levels:
        weights = weights_below(level, node.chosen, node.crossing)
        places = listed(classes, level, weights, node.tables, math.inf, 500).places[:20]
        if not len(places):
            return
        nodes = []
        for place in map(tuple, places.tolist()):
            energy = term(classes, level, weights, node.tables, place)
            with pytest.MonkeyPatch.context() as patch:
                found = child(classes, node, place, energy, math.inf)
                patch.setattr("hwmodel.tiling.optimal.nodes.nearer", lambda _, __, own: own)
                nodes.append(child(classes, node, place, energy, math.inf))
            if found is not None:
                assert found.bound >= nodes[-1].bound * (1 - 1e-12)
        together = children(classes, node, places, math.inf)
        alone = [one.bound if one is not None else math.inf for one in nodes]
        assert together == pytest.approx(alone, rel=1e-9)
        nodes = [one for one in nodes if one is not None]
        if not nodes:
            return
        node = nodes[data.draw(st.integers(0, len(nodes) - 1))]


@ways
@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data(), st.integers(3, 4), choices, st.floats(1, 10))
def test_weights_that_move_bound_every_tiling_below_a_node(
    as_asked, compiled, data, levels, options, times
):
    """Truth: the cheapest of all tilings is below the nodes of its own classes.

    Bounds are asked to rise to several times its energy, so that they move as much as they can.
    """
    as_asked(compiled)
    problem = data.draw(small_problems(lambda sizes: tilings(sizes, levels - 1)))
    hardware = data.draw(chips(levels))
    judged = least_energy(problem, hardware, options)
    if judged is None:
        return
    energy, tiles, held = judged
    given = options.rule, options.ofmap_space, options.transfers, options.limit, Budget(10**9)
    classes = Classes(space(problem, hardware, options.partial_sum_bits, *given))
    (order,) = orders(classes.space, [held])
    node = root(classes, order, {})
    most, start = energy * (1 + 1e-9), None
    for level, tile in zip(order.levels, tiles, strict=True):
        found = shifted(classes, node, times * energy, 10, start)
        assert found.bound <= most
        start = found.multipliers[1:]
        place = tuple(
            next(i for i, least in enumerate(classes.smallest[d]) if least <= tile[d])
            for d in range(7)
        )
        weights = weights_below(level, node.chosen, node.crossing)
        if compiled:
            moved = added_weights(start) if len(start) else start.reshape(0, 6)
            (bound,) = children(classes, node, np.array([place]), math.inf, moved)
            assert bound <= most
        own = term(classes, level, weights, node.tables, place)
        node = child(classes, node, place, own, math.inf)
        assert node is not None and node.bound <= most


@ways
def test_a_walk_of_many_reductions_sees_classes_and_not_only_their_floors(
    as_asked, compiled, monkeypatch
):
    """Where walks ended before the first class, searches of many taps had no tiling to begin with."""
    as_asked(compiled)
    monkeypatch.setattr("hwmodel.tiling.optimal.listing.MOST_WORK", 500)
    problem, hardware = many_taps(3, 16, 64), load(Hardware, "ascend")
    prepared = space(problem, hardware, 32, TOUCHED, "held", "both", 1000, Budget(10**9))
    classes = Classes(prepared)
    assert len(classes.smallest[5]) * len(classes.smallest[6]) > 200
    (order,) = orders(prepared, [("F",) * 3])
    found = listed(classes, order.levels[0], order.levels[0].weights, classes.whole, math.inf, 1000)
    assert len(found.places)


@pytest.mark.parametrize("budget", [0, 1, 600_000])
def test_a_layer_that_touches_no_row_is_tiled_however_early_a_search_ends(budget):
    """The level-by-level search, which is looked at in the end, divided by its rows."""
    window = Window(2, 1, 1, -2)
    problem = Problem(
        Extents(7, 2, 1, 1, 1, 1, 1), window, Window(8, 5, 1, -2), Widths(8, 8, 8)
    )  # fmt: skip
    hardware = chip([200, 200], [(1, 1), (3, 1.5), (9, 0)])
    found = optimal(problem, hardware, Options(budget=budget)).certificate
    assert found.energy == pytest.approx(least_energy(problem, hardware, Options())[0])


@ways
@pytest.mark.parametrize("sums", [1, 2])
def test_classes_of_a_level_that_costs_nothing_are_listed_by_hand(as_asked, compiled, sums):
    """What cost no more than nothing was taken for listed already, and the rest for proved.

    Two channels that must be cut in L2: cut in L1, too, no sum is read there again.
    """
    as_asked(compiled)
    problem = Problem(Extents(5, 1, 2, 1, 1, 1, 1), Window(1), Window(1), Widths(1, 8, 1))
    free, split = (0, 0), ((0, 0), (0, 0), (1, 0))
    hardware = chip(
        [(8, 16, 8), 16, (8, 8, 4)], [free, split, free, ((0, 0), (0, 0), (0, 1))]
    )  # fmt: skip
    found = optimal(problem, hardware, Options(partial_sum_bits=sums)).certificate
    assert found.proved
    assert found.energy == 5 * 1 + 5 * sums  # writes in L3: the first of each output unfinished
