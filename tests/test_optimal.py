from math import comb, prod

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hwmodel.accesses import traffic
from hwmodel.errors import Infeasible
from hwmodel.optimal import Options, optimal
from hwmodel.pricing import memory_energy
from tests.exhaustive import least_energy
from tests.strategies import chips, row_rules, small_problems


def tilings(sizes, levels=3):
    return prod(comb(n + levels - 1, levels) for n in sizes)


choices = st.builds(
    Options,
    partial_sum_bits=st.sampled_from((1, 4, 16)),
    stationary=st.sampled_from(("filter", "best")),
    rule=row_rules,
    ofmap_space=st.sampled_from(("held", "counted")),
)


@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data(), st.integers(2, 4), choices)
def test_the_optimum_is_that_of_every_integer_chain(data, levels, options):
    problem = data.draw(small_problems(lambda sizes: tilings(sizes, levels - 1)))
    hardware = data.draw(chips(levels))
    judged = least_energy(problem, hardware, options)
    if judged is None:
        with pytest.raises(Infeasible):
            optimal(problem, hardware, options)
        return
    mapping, certificate = optimal(problem, hardware, options)
    counted = traffic(problem, mapping, "exact", options.rule)
    priced = memory_energy(problem, counted, hardware, options.partial_sum_bits)
    assert certificate.energy == priced
    assert certificate.proved and certificate.gap == 0
    assert certificate.energy == pytest.approx(judged[0], rel=1e-12)
