"""A trace replaces exactly what it measured."""

import pytest

from hwmodel import evaluate
from hwmodel.model.compare import compare
from hwmodel.model.reached import reached
from hwmodel.specs.trace import write_trace
from tests.rows import merged
from tests.traces import BITS, trace


def reports():
    plain = evaluate("conv-small", "ascend", "bold", accounting="full", batch=4)
    traced = evaluate("conv-small", "ascend", "bold", accounting="full", trace=trace())
    return plain, traced


def test_each_layer_has_its_own_figures():
    edges = reports()[1].edges
    assert [edges[name].signal_bits for name in BITS] == [7, 6, 6]
    assert [edges[name].sum_bits for name in BITS] == [9, 7, 8]
    assert edges["act3"].signal_bits == 6  # what fc4 sends
    assert edges["fc5"].signal_bits == 32  # full precision is not a Boolean signal


def test_only_what_was_measured_differs():
    plain, traced = reports()
    for name, edge in plain.edges.items():
        assert traced.edges[name].bits == edge.bits or edge.bits == edge.sum_bits
    for layer in ("conv2", "fc4"):
        one, other = (
            {
                r.tensor: r
                for r in reversed(merged(report))  # the weights stand before the biases
                if (r.layer, r.phase, r.level) == (layer, "update", "L3")
            }
            for report in (plain, traced)
        )
        weights = one["dF"].accesses
        assert one["dF"].bits == 16 * weights
        assert other["dF"].bits == BITS[layer][2] * weights
        assert one["accumulator"].bits == 2 * 16 * weights
        assert other["accumulator"].bits == 2 * BITS[layer][3] * weights
        assert one["F"].accesses == weights + round(0.01 * weights)
        assert other["F"].accesses == weights + round(0.25 * weights)
    forward = [
        [r for r in merged(report) if r.phase == "forward" and r.tensor != "kept sum"]
        for report in (plain, traced)
    ]
    assert forward[0] == forward[1]


def test_full_precision_takes_nothing_of_its_trace():
    """Full-precision sums and signals are full-precision words, whatever a run measured."""
    plain = evaluate("conv-small", "ascend", "fp", accounting="full", batch=4)
    traced = evaluate(
        "conv-small", "ascend", "fp", accounting="full", trace=trace("fp", weights="real")
    )
    assert merged(plain) == merged(traced)
    assert {edge.sum_bits for edge in traced.edges.values()} == {32}


@pytest.mark.parametrize(("target", "goal", "steps"), [(0.9, 90, [20, 10]), (0.5, 50, [10, 10])])
def test_energy_to_an_accuracy_is_steps_times_the_iteration(target, goal, steps):
    traces = [trace(), trace("fp", accuracies=(0.95, 0.97), weights="real")]
    lines = list(
        compare("conv-small", ["ascend"], ["bold", "fp"], accounting="full", traces=traces)
    )
    ends = reached(lines, traces, target, sustain=1)
    assert [line.batch for line in lines] == [4, 4]
    assert [end.target_accuracy_percent for end in ends] == [pytest.approx(goal)] * 2
    assert [end.steps_middle for end in ends] == steps
    for line, end in zip(lines, ends, strict=True):
        assert (
            end.energy_low == end.energy_middle == end.energy_high == end.steps_middle * line.energy
        )
        assert (end.runs, end.runs_reached, end.spread) == (1, 1, "one run")


def test_a_rate_that_stays_is_its_own_mean():
    """Ten times 0.1 and divided by 10 is less than 0.1 where each sum is rounded."""
    ten = trace(accuracies=(0.5,) * 10, flip=0.1)
    found = evaluate("conv-small", "ascend", "bold", accounting="full", trace=ten).measured
    assert {layer.flip_rate for layer in found.values()} == {0.1, None}


def test_only_widths_and_rates_are_called_measured(hwmodel, tmp_path):
    """An energy is computed with a trace or without; where nothing moves there is no table."""
    write_trace(trace(), tmp_path / "t.json")
    write_trace(trace("fp", weights="real"), tmp_path / "fp.json")
    asked = ("report", "conv-small", "--hardware", "ascend", "--accounting", "full")
    _, out, _ = hwmodel(*asked, "--trace", "t.json", "--method", "bold")
    assert "energy as assumed   energy as traced" in out and "energy measured" not in out
    _, out, _ = hwmodel(*asked, "--trace", "fp.json", "--method", "fp")
    assert "the trace changes no width and no energy here" in out and "as traced" not in out
