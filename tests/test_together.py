"""What is known of all levels together, against all tilings of small problems and hard layers."""

from dataclasses import replace
from importlib.util import find_spec
from itertools import pairwise, product
from math import inf

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hwmodel.errors import Infeasible
from hwmodel.specs.files import load
from hwmodel.specs.hardware import Hardware
from hwmodel.tiling.accesses import pieces, traffic
from hwmodel.tiling.optimal.best_first import Search, _Leaf
from hwmodel.tiling.optimal.bounds import space
from hwmodel.tiling.optimal.budget import NEST, Budget
from hwmodel.tiling.optimal.loop_chains import Box, _Known
from hwmodel.tiling.optimal.nodes import orders, root
from hwmodel.tiling.optimal.search import Options, optimal
from hwmodel.tiling.optimal.terms import Together
from hwmodel.tiling.options import SearchOptions, memories
from hwmodel.tiling.pricing import memory_energy
from hwmodel.tiling.spatial import cuts
from hwmodel.tiling.spatial.choices import holdings
from hwmodel.tiling.spatial.parted import Parts
from hwmodel.tiling.spatial.space import Space
from hwmodel.tiling.spatial.together import together
from hwmodel.work.problem import Extents, Problem, Widths, Window
from tests.exhaustive import least_energies
from tests.strategies import chips, examples, row_rules, small_problems
from tests.test_optimal import tilings, ways

choices = st.builds(
    Options,
    partial_sum_bits=st.sampled_from((1, 4, 16)),
    stationary=st.sampled_from(("filter", "either", "best")),
    rule=row_rules,
    transfers=st.sampled_from(("upper", "both")),
    budget=st.sampled_from((0, 2 * NEST, 40 * NEST)),
)


@ways
@settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data(), st.integers(2, 4), choices)
def test_no_tiling_is_below_what_is_known_of_all_levels(compiled, data, levels, options):
    """Of every choice of what is held, and of a search that asks; small gains are looked at, too."""
    problem = data.draw(small_problems(lambda sizes: tilings(sizes, levels - 1)))
    hardware = memories(data.draw(chips(levels)))
    judged = {held: least for least, _, held in least_energies(problem, hardware, options)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hwmodel.tiling.optimal.compiled._switch", [compiled])
        for name in ("WORTH", "LITTLE"):
            patch.setattr(cuts, name, 1e-9)
        patch.setattr("hwmodel.tiling.spatial.parted.MOST", 30)
        if not judged:
            with pytest.raises(Infeasible):
                optimal(problem, hardware, options, together)
            return
        found = together(problem, hardware, options, inf, 0.0)
        certificate = optimal(problem, hardware, options, together).certificate
        floors_alone = optimal(
            problem, hardware, options, lambda *given: found._replace(mappings=[])
        )
    least = min(judged.values())
    for held, energy in judged.items():
        assert found.floors[held] <= energy * (1 + 1e-9)
    for mapping in found.mappings:
        counted = traffic(problem, mapping, "exact", options.rule)
        priced = memory_energy(
            problem, counted, hardware, options.partial_sum_bits, options.transfers
        )
        assert priced >= least * (1 - 1e-9)
        assert priced >= found.floors[mapping.held] * (1 - 1e-9)
    for proof in (certificate, floors_alone.certificate):
        assert proof.lower_bound * (1 - 1e-9) <= least <= proof.energy * (1 + 1e-9)


@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data(), st.integers(2, 4), choices)
def test_more_freedom_is_never_worse_where_all_levels_are_asked(data, levels, options):
    problem = data.draw(small_problems(lambda sizes: tilings(sizes, levels - 1)))
    hardware = memories(data.draw(chips(levels)))
    try:
        energies = [
            optimal(problem, hardware, replace(options, stationary=held), together).certificate
            for held in ("filter", "either", "best")
        ]
    except Infeasible:
        return
    for less, more in pairwise(energies):
        assert more.energy <= less.energy * (1 + 1e-12)


@ways
@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data(), st.integers(3, 4), st.sampled_from((1, 5, 40, 400)))
def test_what_is_put_off_is_bounded_wherever_a_search_ends(compiled, data, levels, nests):
    """Leaves that take long to meet wait until the end; lists are so short that many do."""
    problem = data.draw(small_problems(lambda sizes: tilings(sizes, levels - 1)))
    hardware = memories(data.draw(chips(levels)))
    options = Options(stationary="best", limit=40, budget=nests * NEST)
    judged = [energy for energy, _, _ in least_energies(problem, hardware, options)]
    if not judged:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hwmodel.tiling.optimal.compiled._switch", [compiled])
        found = optimal(problem, hardware, options).certificate
    assert found.lower_bound * (1 - 1e-9) <= min(judged) <= found.energy * (1 + 1e-9)


def product_of(n, m, c, bits):
    return Problem(Extents(n, m, c, 1, 1, 1, 1), Window(1), Window(1), Widths(*bits))


@pytest.mark.skipif(not find_spec("numba"), reason="budgets are of compiled searches")
@pytest.mark.parametrize(
    ("problem", "chip"),
    [
        (product_of(4096 * 1024, 50257, 768, (32, 32, 32)), "ascend"),  # the head of GPT-2
        (product_of(4096 * 1024, 768, 50257, (8, 8, 8)), "ascend"),
        (product_of(512 * 2048, 11008, 4096, (32, 32, 32)), "v100"),  # Llama
    ],
)
def test_products_of_three_large_loops_are_nearly_proved(problem, chip):
    """Level by level gaps of up to 24 % were left, three quarters of them in the tiling."""
    hardware, options = memories(load(Hardware, chip)), Options(stationary="best")
    alone = optimal(problem, hardware, options).certificate
    found = optimal(problem, hardware, options, together).certificate
    assert found.energy <= alone.energy
    assert found.gap <= 0.02


def test_bounds_of_choices_are_those_of_what_they_hold():
    """Two levels below the outermost: each choice alone is no cheaper than its own bound."""
    problem, hardware = product_of(60, 40, 50, (8, 8, 8)), memories(load(Hardware, "v100"))
    floors = together(problem, hardware, Options(stationary="best"), inf, 0.0).floors
    assert set(floors) == set(product("IFO", repeat=len(hardware.levels) - 1))
    alike = optimal(problem, hardware, Options(stationary="filter")).certificate
    assert floors[("F",) * (len(hardware.levels) - 1)] <= alike.energy * (1 + 1e-9)


def opened(problem, hardware, options, budget):
    """A search that has entered all choices of what is held, and gone on a little."""
    sums, room = options.partial_sum_bits, options.ofmap_space
    made = space(
        problem, hardware, sums, options.rule, room, options.transfers, options.limit, budget
    )
    held = [*product("FIO", repeat=len(hardware.levels) - 1)]
    search = Search(made, orders(made, held), held, options)
    search.run(budget.whole - 1)
    return search


def test_a_choice_is_bounded_by_its_own_level_and_by_all_levels_together():
    """Each by the higher of what is known of it, none by what is known of another."""
    problem, hardware = product_of(60, 40, 50, (8, 8, 8)), memories(load(Hardware, "v100"))
    search = opened(problem, hardware, Options(stationary="best"), Budget(600_000))
    before, energy = dict(search._bounds()), search.energy
    floors = {held: energy * (0.9 + 0.004 * at) for at, held in enumerate(search.floors)}
    search.learn(Together(floors, []))
    after = dict(search._bounds())
    assert len(after) > 3
    for held, key in after.items():
        assert key == pytest.approx(max(before[held], floors[held]))
    assert {held for held in before if held not in after} == {
        held for held in before if max(before[held], floors[held]) >= search._enough
    }


def test_what_is_put_off_is_bounded_and_stays_so_when_a_search_ends():
    problem, hardware = product_of(60, 40, 50, (8, 8, 8)), memories(load(Hardware, "v100"))
    search = opened(problem, hardware, Options(stationary="best"), Budget(600_000))
    order = search.orders[1]
    search._open, search._late = [], [_Leaf(root(search.classes, order, {}), search.energy / 2)]
    assert search.bound == search.energy / 2
    assert search.may_hold([order.held]) and not search.may_hold([search.orders[0].held])
    search.end()
    assert search.bound == search.energy / 2
    search.learn(Together({one.held: search.energy * 0.75 for one in search.orders}, []))
    assert search.bound == search.energy * 0.75


@pytest.mark.skipif(not find_spec("numba"), reason="of compiled lists")
@settings(max_examples=examples(200), deadline=None)
@given(st.data())
def test_chains_that_are_remembered_are_those_of_the_box(data):
    """Boxes that differ in one bound have their own lists, however few are kept."""
    known = _Known(data.draw(st.sampled_from((20, 200, 100_000))))
    length = data.draw(st.integers(1, 12))
    two = st.lists(st.integers(1, length), min_size=2, max_size=2)
    bounds = [[1, 1], [length, length], [length, length]]  # least and largest tiles; most pieces
    for _ in range(8):
        bounds[data.draw(st.integers(0, 2))] = data.draw(two)
        least, largest, most = bounds
        box = Box(length, *(np.array(x) for x in (least, largest, least, most)))
        found, chains, cut, _ = known.listed(box, 1000)
        wanted = [
            (a, b)
            for a, b in product(range(1, length + 1), repeat=2)
            if b <= a
            and all(x <= y <= z for x, y, z in zip(least, (a, b), largest, strict=True))
            and all(x <= y for x, y in zip(pieces(length, [a, b])[1:], most, strict=True))
        ]
        assert found == len(wanted) and [tuple(x) for x in chains.tolist()] == wanted
        assert [list(x) for x in cut.tolist()] == [pieces(length, [*x])[1:] for x in wanted]


@pytest.mark.parametrize("compiled", [True, False])
def test_a_wide_gap_makes_the_budget_larger_where_loops_are_compiled(monkeypatch, compiled):
    """Of a product of which a small budget leaves much; of one that is proved at once, never."""
    monkeypatch.setattr("hwmodel.tiling.optimal.compiled._switch", [compiled])
    raised = []
    monkeypatch.setattr(Budget, "raise_", lambda self, times: raised.append(times))
    chip = memories(load(Hardware, "ascend"))
    hard = Problem(Extents(768, 50257, 4194304, 1, 1, 1, 1), Window(1), Window(1), Widths(1, 1, 1))
    found = optimal(hard, chip, Options(stationary="best", budget=20_000), together)
    assert found.certificate.gap > 1e-2
    assert set(raised) == ({5, 3} if compiled else set())  # the second, as the first did nothing
    raised.clear()
    near = Problem(Extents(12845056, 64, 256, 1, 1, 1, 1), Window(1), Window(1), Widths(32, 32, 32))
    some = optimal(near, chip, Options(stationary="best", budget=200_000), together)
    assert 3e-4 < some.certificate.gap < 1e-2 or not compiled
    assert raised == [3] * len(raised) and bool(raised) == compiled
    raised.clear()
    easy = Problem(Extents(4, 8, 8, 1, 1, 1, 1), Window(1), Window(1), Widths(8, 8, 8))
    assert optimal(easy, chip, Options(stationary="best"), together).certificate.proved
    assert not raised


def test_a_budget_that_is_raised_has_what_was_left_and_as_much_more():
    budget = Budget(100)
    budget.spend(30)
    budget.raise_(4)
    assert (budget.whole, budget.left) == (400, 370)


def test_floors_are_bounds_as_they_are():
    """Of each choice what its parts say, no more; parts themselves are judged in test_parts."""
    chip, options = memories(load(Hardware, "v100")), Options(stationary="best")
    problem = Problem(Extents(40, 30, 56, 1, 1, 1, 1), Window(1), Window(1), Widths(8, 8, 8))
    found = together(problem, chip, options, known=0.0, bound=0.0)  # nothing is cut or sought
    asked = SearchOptions(
        search="optimal", stationary="best", counting="exact", rows="touched", padding="skipped",
        partial_sum_bits=32,
    )  # fmt: skip
    parts = Parts.of(Space(problem, chip, asked), holdings("best", 3), apart=False)
    assert found.mappings == []
    assert found.floors == {held: one.energy for held, one in parts.sure().items()}
