"""A trace replaces exactly what it measured."""

import pytest

from hwmodel import evaluate
from hwmodel.model.compare import compare, reached
from hwmodel.model.measured import measures
from hwmodel.specs.trace import Trace, write_trace
from tests.rows import merged

BITS = {"conv2": (9, 7, 11), "fc4": (8, 6, 5)}  # sums, signals, optimizer's memory


def magnitudes(bits):
    return {
        "largest": 1.0, "rms": 0.5, "zero_share": 0.0, "bits": bits, "rounded_zero_share": 0.0,
        "octaves": [0.0] * 16,
    }  # fmt: skip


def trace(method="bold", accuracies=(0.5, 0.9), flip=0.25):
    run = {
        "tool": "0", "network": "n", "method": method, "dataset": "d", "seed": 0, "epochs": 2,
        "batch": 4, "train_images": 40, "test_images": 10, "learning_rate": 1.0, "adam_rate": 0.1,
        "frozen": False, "reweighting": True, "scaling": True, "signal": "real", "logic": "xnor",
        "signal_error": 0.01, "network_digest": "0" * 64, "method_digest": "0" * 64,
        "data_digest": "0" * 64,
    }  # fmt: skip
    kinds = {"conv2": "conv", "fc4": "linear"}
    ones = dict.fromkeys(("N", "M", "C", "HO", "WO", "HF", "WF", "stride", "fan_in"), 1)
    layers = [
        {"name": name, "kind": kinds[name], "weights": "boolean", "padding": 0, "parameters": 1,
         "worst_accumulator_bits": 10} | ones
        for name in BITS
    ]  # fmt: skip
    epochs = [
        {"epoch": i, "steps": 10 * i, "loss": 1.0, "train_accuracy": a, "accuracy": a,
         "layers": [
             {"name": name, "flip_rate": flip,
              "preactivation": {"lowest": -1, "highest": 1, "mean": 0.0, "deviation": 1.0},
              "accumulator_bits": sums, "signal": magnitudes(signal),
              "sent": magnitudes(signal), "optimizer_state": magnitudes(memory)}
             for name, (sums, signal, memory) in BITS.items()
         ]}
        for i, a in enumerate(accuracies, start=1)
    ]  # fmt: skip
    return Trace.model_validate({"version": 1, "run": run, "layers": layers, "epochs": epochs})


def reports(network="conv-small"):
    plain = evaluate(network, "ascend", "bold", accounting="full", batch=4)
    traced = evaluate(network, "ascend", "bold", accounting="full", batch=4, trace=trace())
    return plain, traced


def test_names_come_first_then_kinds_then_the_assumption():
    _, traced = reports()
    edges = traced.edges
    assert edges["conv2"].signal_bits == 7 and edges["conv2"].sum_bits == 9  # its own
    assert edges["conv3"].signal_bits == 7 and edges["conv3"].sum_bits == 9  # of its kind
    assert edges["fc4"].signal_bits == 6 and edges["fc4"].sum_bits == 8
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
        assert one["dF"] == other["dF"]  # the vote was not measured
        weights = one["dF"].accesses
        assert one["accumulator"].bits == 2 * 16 * weights
        assert other["accumulator"].bits == 2 * BITS[layer][2] * weights
        assert one["F"].accesses == weights + round(0.01 * weights)
        assert other["F"].accesses == weights + round(0.25 * weights)
    forward = [
        [r for r in merged(report) if r.phase == "forward" and r.tensor != "kept sum"]
        for report in (plain, traced)
    ]
    assert forward[0] == forward[1]


def test_a_method_without_boolean_training_takes_nothing_of_a_trace():
    plain = evaluate("conv-small", "ascend", "binarynet", accounting="full")
    traced = evaluate("conv-small", "ascend", "binarynet", accounting="full", trace=trace())
    assert merged(plain) == merged(traced)


@pytest.mark.parametrize("network", ["conv-small", "vgg-small"])
def test_only_sums_of_truth_values_take_a_measured_width(network):
    """Full-precision sums are full-precision words, whatever a layer of their name or kind had."""
    full = evaluate(network, "ascend", "fp", accounting="full", trace=trace())
    assert {edge.sum_bits for edge in full.edges.values()} == {32}
    boolean = evaluate(network, "ascend", "bold", accounting="full", trace=trace())
    last = {"conv-small": "fc5", "vgg-small": "fc3"}[network]
    assert boolean.edges[last].sum_bits == 32  # the classifier stays in full precision


def test_a_report_says_whose_trace_it_took(hwmodel, tmp_path):
    write_trace(trace(), tmp_path / "t.json")
    asked = (
        "report",
        "vgg-small-1fc",
        "--hardware",
        "ascend",
        "--method",
        "bold",
        "--trace",
        "t.json",
    )
    code, out, _ = hwmodel(*asked, "--csv", "t.csv")
    assert code == 0
    assert "the trace is of n trained by bold on d: layers take" in " ".join(out.split())


@pytest.mark.parametrize(
    ("target", "goal", "steps"), [(0.9, 90, [20, 10]), (0.5, 50, [10, 10]), (None, 90, [20, 10])]
)
def test_energy_to_an_accuracy_is_steps_times_the_iteration(target, goal, steps):
    traces = [trace(), trace("fp", accuracies=(0.95, 0.97))]
    lines = list(
        compare("conv-small", ["ascend"], ["bold", "fp"], accounting="full", batch=4, traces=traces)
    )
    ends = reached(lines, traces, target)
    assert [end.target_accuracy_percent for end in ends] == [pytest.approx(goal)] * 2
    assert [end.steps for end in ends] == steps
    for line, end in zip(lines, ends, strict=True):
        assert end.energy_to_accuracy == end.steps * line.energy


def test_a_rate_that_stays_is_its_own_mean():
    """Ten times 0.1 and divided by 10 is less than 0.1 where each sum is rounded."""
    found = measures(trace(accuracies=(0.5,) * 10, flip=0.1))
    assert {layer.flip_rate for layer in (*found.names.values(), *found.kinds.values())} == {0.1}


def test_only_widths_and_rates_are_called_measured(hwmodel, tmp_path):
    """An energy is computed with a trace or without; where nothing moves there is no table."""
    write_trace(trace(), tmp_path / "t.json")
    asked = ("report", "vgg-small-1fc", "--hardware", "ascend", "--accounting", "full")
    _, out, _ = hwmodel(*asked, "--trace", "t.json", "--method", "bold")
    assert "energy as assumed   energy as traced" in out and "energy measured" not in out
    _, out, _ = hwmodel(*asked, "--trace", "t.json", "--method", "fp")
    assert "the trace changes no width and no energy here" in out and "as traced" not in out
