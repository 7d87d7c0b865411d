from hypothesis import given, settings
from hypothesis import strategies as st

from hwmodel.tiling.accesses import Mapping, traffic
from hwmodel.tiling.rows import RowRule, block_rows, most_rows, products
from hwmodel.work.problem import Extents, Problem, Widths, Window
from tests import simulator
from tests.strategies import examples, problems, row_rules, tile_chains


@settings(max_examples=examples(800), deadline=None)
@given(st.data(), problems, row_rules)
def test_equals_the_simulator_to_the_element(data, problem, rule):
    tiles = data.draw(tile_chains(problem.extent))
    held = tuple(data.draw(st.sampled_from("FIO")) for _ in tiles)
    counted = traffic(problem, Mapping(tiles, held), "exact", rule)
    assert [t._asdict() for t in counted] == simulator.simulate(problem, tiles, held, rule)


wide = st.builds(
    Window, st.integers(1, 40), *[st.integers(1, 6)] * 2, st.integers(-3, 12), st.just(0),
    st.integers(1, 6),
)  # fmt: skip


@settings(max_examples=examples(1500), deadline=None)
@given(wide, row_rules, *[st.integers(0, 12), st.integers(1, 15)] * 2)
def test_rows_of_a_block_are_those_that_are_met(window, rule, out, outs, tap, taps):
    rows = simulator.needed(window, rule, (out, out + outs), (tap, tap + taps))
    assert block_rows(window, rule, out, outs, tap, taps) == len(rows)
    met = simulator.met(window, rule, (0, outs), (0, taps))
    assert products(window, rule, outs, taps) == len(met)


@settings(max_examples=examples(300), deadline=None)
@given(wide, row_rules, st.integers(1, 12), st.integers(1, 6), st.data())
def test_no_block_needs_more_than_the_most(window, rule, outs, taps, data):
    n, k = data.draw(st.integers(1, outs)), data.draw(st.integers(1, taps))
    whole = int(block_rows(window, rule, 0, outs, 0, taps))
    needed = [
        len(simulator.needed(window, rule, (a, a + n), (b, b + k)))
        for a in range(outs - n + 1)
        for b in range(taps - k + 1)
    ]
    most = int(most_rows(window, rule, whole, n, k))
    assert max(needed) <= most <= whole
    assert most <= int(most_rows(window, rule, whole, n + 1, k))


@settings(max_examples=examples(200), deadline=None)
@given(st.data(), problems)
def test_the_sources_table_is_exact_where_tiles_divide(data, problem):
    """With padding and skipped rows counted; sums are counted only where they come to rest."""
    height, width = (w._replace(spread=1) for w in (problem.height, problem.width))
    problem = Problem(problem.extent, height, width, problem.bits, problem.groups)
    chain = [problem.extent]
    for _ in range(data.draw(st.integers(1, 3))):
        divisors = ([t for t in range(1, n + 1) if n % t == 0] for n in chain[-1])
        chain.append(Extents(*(data.draw(st.sampled_from(d)) for d in divisors)))
    tiles, held = tuple(chain[1:]), ("F",) * (len(chain) - 1)
    table = traffic(problem, Mapping(tiles, held), "paper")
    walked = simulator.simulate(problem, tiles, held, RowRule("bounding", "counted"))
    for ours, judged in zip(table, walked, strict=True):
        for name in ("I_reads", "F_reads", "O_partial_reads"):
            assert getattr(ours, name) == judged[name]
    assert table[0].O_writes == walked[0]["O_writes"]


def test_counts_do_not_overflow_and_need_no_walk():
    n = 2**31
    problem = Problem(
        Extents(n, n, n, n, n, 3, 3), Window(n, 1, 1, 1, 1), Window(n, 1, 1, 1, 1), Widths(1, 1, 1)
    )
    tile = Extents(n - 1, n // 3, 7, 1000, 1001, 3, 3)
    inner = Extents(1000, 37, 3, 10, 11, 3, 2)
    top, *_, last = traffic(problem, Mapping((tile, inner), ("F", "I")), "exact")
    assert top.F_reads == n * n * 9
    assert last.I_reads % (n * n) == 0 and last.I_reads > 2**150
