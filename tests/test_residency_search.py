"""How much is searched for tensors that stay: room without use, tilings near enough, second looks."""

import random
from itertools import combinations
from itertools import product as every

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hwmodel import evaluate
from hwmodel.errors import Infeasible
from hwmodel.model.entries import AWAY
from hwmodel.model.residency.joint import tight_steps
from hwmodel.model.residency.packing import Row, solved
from hwmodel.model.residency.run import Outcome
from hwmodel.tiling.optimal.search import Options, optimal
from hwmodel.tiling.tile import tile
from hwmodel.tiling.view import Homes, view
from hwmodel.work.problem import OPERANDS
from tests.exhaustive import least_energy
from tests.strategies import chips, examples, small_problems
from tests.test_optimal import tilings
from tests.test_residency import CHIP, THOROUGH, run_of, small


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data(), st.integers(2, 3), st.sampled_from((0.01, 0.1, 0.5)))
def test_a_search_with_slack_ends_within_it_and_its_bound_holds(data, levels, share):
    problem = data.draw(small_problems(lambda sizes: tilings(sizes, levels - 1)))
    hardware = data.draw(chips(levels))
    judged = least_energy(problem, hardware, Options())
    if judged is None:
        with pytest.raises(Infeasible):
            optimal(problem, hardware, Options(slack=1.0))
        return
    least = judged[0]
    _, certificate = optimal(problem, hardware, Options(slack=share * least))
    assert certificate.lower_bound <= least * (1 + 1e-12)
    assert least * (1 - 1e-12) <= certificate.energy <= least * (1 + share) * (1 + 1e-12)


def test_more_room_than_everything_takes_is_of_no_use():
    """What stays elsewhere needs its own bits and no more: the same tilings, and one search."""
    run = run_of("conv-mnist", small("64 KiB", "16 KiB"), "fp16", CHIP)
    for product in run.products.values():
        bits, n = product.work.problem.bits, product.work.problem.extent
        most = {
            "I": product.work.problem.I_elements * bits.I,  # padding is met by no window alone
            "F": n.M * n.C * n.HF * n.WF * bits.F,
            "O": n.N * n.M * n.HO * n.WO * max(product.options.partial_sum_bits, bits.O),
        }
        for homes in [Homes(*some) for some in combinations((None, 1, 2, None), 3)]:
            huge = dict.fromkeys(run.capacities, 2**40)
            seen = product._seen(homes, huge)
            for level in range(homes.outermost, len(product.chip.levels)):
                if level in run.capacities:
                    there = seen.levels[level - homes.outermost].buffers
                    shared = [x for x in OPERANDS if (homes.of(x) or 0) < level]
                    held = [one for one in there if one.capacity_bits is not None]
                    assert [set(one.holds) for one in held] == ([set(shared)] if shared else [])
                    assert all(x.capacity_bits <= sum(most[y] for y in shared) for x in held)
            free = tile(product.work.problem, view(product.chip, homes, huge), product.options)
            own = tile(product.work.problem, seen, product.options)
            assert free.certificate.proved
            assert own.certificate.energy == pytest.approx(free.certificate.energy, rel=1e-12)


@pytest.mark.filterwarnings("ignore:.*is larger than")
def test_a_second_look_finds_what_a_choice_could_have():
    """Tilings of a sixteenth of the room, in the place of those with all of it."""
    run = run_of("conv-mnist", small("4 KiB"), "fp16", CHIP)
    for product in run.products.values():
        product.explored({k: bits // 16 for k, bits in run.capacities.items()})
    poor = {
        number: product.priced(product.tilings[0], AWAY) for number, product in run.products.items()
    }
    best = run.outcome(())
    assert isinstance(best, Outcome)
    lost = sum(poor[number].energy - tiled.energy for number, tiled in best.tilings.items())
    assert lost > 0
    one = best._replace(energy=best.energy + lost, tilings=poor)
    assert run.closer(one, 2.0) == one
    found = run.closer(one, 0.0)
    assert found.energy == pytest.approx(best.energy, rel=1e-12)
    assert sum(tiled.energy for tiled in found.tilings.values()) == pytest.approx(
        sum(tiled.energy for tiled in best.tilings.values()), rel=1e-12
    )


def test_steps_with_less_room_taken_say_nothing():
    """Of steps without tiles only those count of which no other has all that lives, and more."""
    draw = random.Random(1)
    for _ in range(200):
        alive = {
            step: draw.sample(range(6), draw.randint(0, 5)) for step in range(draw.randint(1, 9))
        }
        tiles = {step for step in alive if draw.random() < 0.3}
        kept = tight_steps(alive, tiles)
        assert tiles <= set(kept)
        bits = [draw.randint(1, 9) for _ in range(6)]
        for chosen in range(64):
            taken = {
                step: sum(bits[i] for i in living if chosen >> i & 1)
                for step, living in alive.items()
            }
            assert max(taken.values()) == max(taken[step] for step in kept)


@pytest.mark.parametrize("seed", range(6))
def test_a_gap_is_one_of_all_that_is_paid(seed):
    """What is paid beside a program is in its gap, and in no answer; judged by all choices."""
    draw = random.Random(seed)
    values = [draw.randint(1, 60) for _ in range(9)]
    rows = [Row({i: draw.randint(1, 20) for i in range(9)}, 60) for _ in range(3)]
    least = min(
        -sum(value for value, there in zip(values, one, strict=True) if there)
        for one in every((0, 1), repeat=9)
        if all(sum(bits * one[i] for i, bits in row.of.items()) <= row.most for row in rows)
    )
    exact = solved([-value for value in values], rows, 0.0, beside=1e6, begins_anew=False)
    assert (exact.cost, exact.bound) == pytest.approx((least, least))
    rough = solved([-value for value in values], rows, 1e-4, beside=1e6)
    assert least <= rough.cost + 1e-6 <= least + 1e-4 * 1e6
    assert rough.bound <= least + 1e-6
    assert sum(-values[i] for i in rough.chosen) == pytest.approx(rough.cost)


@THOROUGH
def test_vgg_small_at_batch_64_is_no_dearer_than_a_choice_that_was_seen():
    """With F:conv1 and F:fc3 in L1, a:act4, a:act6 and the maps of fc1 and fc2 in L2: 16,122.5 µJ."""
    report = evaluate("vgg-small", "ascend", "fp", accounting="chip", mode="inference", batch=64)
    assert report.residency.lower_bound <= report.residency.energy <= 16_122.53e6
