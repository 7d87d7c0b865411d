"""Limited widths: grids by hand, what is rounded where, and one file for energy and accuracy."""

import math

import numpy as np
import pytest
import small
from hypothesis import given
from hypothesis import strategies as st

from hwmodel import evaluate
from hwmodel.errors import DataError, SpecError
from hwmodel.specs.limits import AccumulatorWidth, Limits, TensorWidth
from hwmodel.specs.method import Method
from hwmodel.specs.trace import dumps, write_trace
from hwmodel.specs.training import Recipe
from hwmodel.trainer.layers import BoolConv, BoolLinear, Rules
from hwmodel.trainer.nets import build
from hwmodel.trainer.optim import boolean_step
from hwmodel.trainer.rounding import STATIC_STEPS, Limiter, exponent, limited
from hwmodel.trainer.stack import stack
from hwmodel.trainer.train import Settings, train
from hwmodel.trainer.weights import BoolWeights
from hwmodel.trainer.windows import Window
from tests.rows import merged
from tests.traces import trace

Z = np.array([0.30, -0.07, 0.011, 0], np.float32)


def bold(**widths):
    return small.method().model_copy(
        update={"name": "mine", "widths": Limits.model_validate(widths)}
    )


# Grids


@pytest.mark.parametrize(
    ("rounding", "steps"),
    [("nearest", (5, -1, 0, 0)), ("truncate", (4, -1, 0, 0)), ("floor", (4, -2, 0, 0))],
)
def test_four_bits_by_hand(rounding, steps):
    """max 0.30 is below 2^-1, so a step is 2^(-1 - 4 + 1): 4.8, -1.12 and 0.176 steps."""
    assert exponent(Z, 4) == -1
    assert limited(Z, 4, -1, rounding).tolist() == [k * 2**-4 for k in steps]


def test_one_bit_by_hand():
    """The mean of 0.30, 0.07 and 0.011 is 0.127, nearest to 2^-3; exact zeros stay."""
    assert exponent(Z, 1) == -3
    assert limited(Z, 1, -3).tolist() == [0.125, -0.125, 0.125, 0]


@pytest.mark.parametrize("largest", [0.25, 0.2500001, 0.4999999, 0.5, 1.0])
def test_a_power_of_two_belongs_to_the_next_scale(largest):
    """Floor(log2) + 1: 0.25 and all below 0.5 have -1, 0.5 has 0, 1 has 1."""
    assert exponent(np.array([-largest, 0.1]), 8) == math.floor(math.log2(largest)) + 1


def test_half_a_step_goes_to_the_even_one():
    assert (limited(np.array([0.5, 1.5, 2.5, -0.5]), 4, 3) / 1).tolist() == [0, 2, 2, 0]


def test_stochastic_rounding_goes_up_as_often_as_it_should():
    z = np.full(100_000, 0.3)
    draws = np.random.default_rng(0).random(z.shape)
    found = limited(z, 4, 3, "stochastic", draws)  # a step of 1
    assert set(found) == {0, 1}
    assert found.mean() == pytest.approx(0.3, abs=4 * math.sqrt(0.21 / 100_000))


@given(st.lists(st.floats(-100, 100, width=32), min_size=1, max_size=30), st.integers(2, 16))
def test_a_limited_tensor_is_whole_steps_within_its_range(values, bits):
    z = np.array(values, np.float32)
    e = exponent(z, bits)
    if e is None:
        assert not z.any()
        return
    found = limited(z, bits, e)
    steps = found.astype(np.float64) / 2.0 ** (e - bits + 1)
    assert (steps == np.rint(steps)).all() and np.abs(steps).max() <= 2 ** (bits - 1) - 1
    inside = np.abs(z) <= (2 ** (bits - 1) - 1) * 2.0 ** (e - bits + 1)
    assert (np.abs(found - z)[inside] <= 2.0 ** (e - bits)).all()  # half a step


def test_a_delayed_scale_is_that_of_the_step_before():
    """0.3 is held in steps of 2^-4; 1.9 then saturates at 7 of them, and is held after that."""
    one = Limiter(TensorWidth(bits=4), (0,))
    assert one(np.array([0.3])).tolist() == [5 / 16]
    assert one(np.array([1.9])).tolist() == [7 / 16]
    assert one(np.array([0.3])).tolist() == [0.25]  # steps of 2^-2: 1.2
    assert one(np.array([0.0])).tolist() == [0]
    assert one.exponent == -1  # zeros have no scale of their own


def test_a_static_scale_is_the_largest_of_the_first_steps():
    one = Limiter(TensorWidth(bits=4, scale="static"), (0,))
    for value in [0.3, 0.9, 0.3]:
        one(np.array([value]))
    assert one(np.array([0.3])).tolist() == [0.25]  # 0.9 has steps of 2^-3: 2.4
    one.steps = STATIC_STEPS
    assert one(np.array([100.0])).tolist() == [7 / 8]
    assert one.exponent == 0


def test_a_step_s_own_scale_never_saturates():
    one = Limiter(TensorWidth(bits=4, scale="step"), (0,))
    assert [one(np.array([v]))[0] for v in (0.3, 1.9, 0.3)] == [5 / 16, 7 / 4, 5 / 16]


# The accumulator


@pytest.mark.parametrize(
    ("before", "votes", "after", "flips"),
    [
        (0.5, (0.03,), 0.875, 0),  # 0.5 + 12 * 0.03 = 0.86, of steps of 1/8: 6.88
        (0.875, (0.03,), 0.0, 1),  # 1.235: the carry is there when it is compared
        (-0.9, (-0.03,), -1.0, 0),  # -1.26, of which -1 is the least there is
        (0.5, (0.03, 0.03), 0.0, 1),
    ],
)
def test_four_bits_of_memory_by_hand(before, votes, after, flips):
    weights = BoolWeights.of(np.array([[[True]]]))
    weights.accumulator[:] = before
    count = 0
    for vote in votes:
        weights.ratio = 1.0
        weights.votes = np.array([[vote]], np.float32)
        count += boolean_step([weights], 12, AccumulatorWidth(bits=4))
    assert (weights.accumulator[0, 0], count) == (after, flips)


# What is rounded


def values_of(net):
    """Steps of the grid in which all values of a tensor are whole, at most how many."""
    for node in net.nodes:
        if node.shape:
            yield node.name, net.signals[node.name], net.sent[node.name]


def on_a_grid(z, bits):
    e = exponent(z, bits)
    return e is None or (limited(z, bits, e, "nearest") == z).all()


def test_signals_are_rounded_where_they_are_received_and_sent():
    limits = Limits(signal=TensorWidth(bits=6, scale="step"))
    net = build(stack(small.network(), small.method()), Recipe(), 16, 0, limits)
    free = build(stack(small.network(), small.method()), Recipe(), 16, 0)
    data = small.images()
    for one in (net, free):
        one.forward(data.x[:16], training=True)
        one.backward(np.random.default_rng(0).standard_normal((16, 10)).astype(np.float32))
    held = {name: (on_a_grid(z, 6), on_a_grid(sent, 6)) for name, z, sent in values_of(net)}
    loose = {name: (on_a_grid(z, 6), on_a_grid(sent, 6)) for name, z, sent in values_of(free)}
    assert held.pop("conv1") == (True, True) and not net.sent["conv1"].size  # it sends nothing
    assert held.pop("fc5") == (False, True)  # the loss's own signal
    assert set(held.values()) == {(True, True)}
    assert not any(a and b for a, b in loose.values())
    zeros = net.signals["sum"] == 0
    assert zeros.mean() >= 8 / 9  # what a pool sends nowhere stays 0


@pytest.mark.parametrize("bits", [2, 8, 16])
def test_products_of_limited_signals_are_exact_in_any_order(bits):
    """Sums of whole numbers: those of Python's, and bit by bit."""
    rng = np.random.default_rng(0)
    most = 2 ** (bits - 1) - 1
    k = rng.integers(-most, most + 1, (700, 40))
    k[:, 0] = most
    layer = BoolLinear(30, 40, rng, Rules(bits=bits), scale=1.0)
    x = rng.random((700, 30)) < 0.5
    x[:, 0] = True
    layer.forward(x)
    sent = layer.backward(k.astype(np.float32) * np.float32(2.0**-9))
    signs = np.where(x, 1, -1).astype(object)
    w = layer.boolean[0].signs.astype(int).astype(object)
    votes = k.astype(object).T @ signs
    assert (layer.boolean[0].votes.astype(object) * 2**9 == votes).all()
    assert (sent.astype(object) * 2**9 == k.astype(object) @ w).all()


def test_so_are_those_of_a_convolution():
    rng = np.random.default_rng(1)
    layer = BoolConv(16, 300, Window(3, 1, 1), rng, Rules(bits=16))
    x = rng.random((2, 5, 5, 16)) < 0.5
    layer.forward(x)
    k = rng.integers(-32767, 32768, (2, 5, 5, 300))
    sent = layer.backward(k.astype(np.float32))
    w = layer.boolean[0].signs.astype(int).reshape(300, 3, 3, 16)
    found = sum(int(k[0, 2 - i + 1, 2 - j + 1] @ w[:, i, j, 5]) for i in range(3) for j in range(3))
    assert sent[0, 2, 2, 5] == found
    plus = np.where(x[:, 1:, 1:, 3], 1, -1)  # the tap after the middle, on both axes
    votes = int((k[:, :4, :4, 7] * plus).sum())
    assert layer.boolean[0].votes.reshape(300, 3, 3, 16)[7, 2, 2, 3] == votes


@pytest.mark.parametrize("widths", [
    {"signal": {"bits": 8}, "vote": {"bits": 8}, "accumulator": {"bits": 8}},
    {"signal": {"bits": 4, "rounding": "stochastic"}, "vote": {"bits": 4, "rounding": "stochastic", "scale": "static"},
     "accumulator": {"bits": 8, "rounding": "stochastic"}},
])  # fmt: skip
def test_a_limited_run_that_was_resumed_gives_the_same_trace(tmp_path, widths):
    settings = Settings(small.network(), bold(**widths), small.training())
    whole = train(settings, small.images())
    path = tmp_path / "t.json"
    train(settings, small.images(), path, stop=lambda: True)
    assert dumps(train(settings, small.images(), path, resume=True)) == dumps(whole)
    for layer in whole.epochs[-1].layers:
        for seen in (layer.vote, layer.optimizer_state, layer.sent):
            assert seen is None or seen.bits <= 8
    assert whole.run.widths == settings.method.widths


def test_without_widths_nothing_is_rounded():
    plain = train(small.settings(), small.images())
    method = small.method().model_copy(update={"widths": Limits()})
    same = train(Settings(small.network(), method, small.training()), small.images())
    assert plain.epochs == same.epochs


# One file for both


def test_the_energy_is_of_the_widths_of_the_method():
    """conv2 has 64 x 32 x 9 weights; the method goes before a trace, a trace before `full`."""
    limits = {"signal": {"bits": 5}, "vote": {"bits": 3}, "accumulator": {"bits": 6}}
    weights = 64 * 32 * 9

    def widths(report):
        rows = {r.tensor: r.bits for r in merged(report)
                if (r.layer, r.phase, r.level) == ("conv2", "update", "L3")}  # fmt: skip
        return (
            report.edges["conv2"].signal_bits,
            rows["dF"] // weights,
            rows["accumulator"] // weights // 2,
        )

    def found(method, **options):
        return widths(evaluate("conv-small", "ascend", method, accounting="full", **options))

    assert found("bold", batch=4) == (16, 16, 16)
    assert found(bold(**limits), batch=4) == (5, 3, 6)
    assert found("bold", trace=trace()) == (7, 6, 11)
    measured = trace(method="mine", widths=Limits.model_validate(limits).model_dump())
    assert found(bold(**limits), trace=measured) == (5, 3, 6)
    only = {"signal": {"bits": 5}}
    part = trace(method="mine", widths=Limits.model_validate(only).model_dump())
    assert found(bold(**only), trace=part) == (5, 6, 11)


def test_a_trace_of_other_widths_is_refused():
    with pytest.raises(DataError) as error:
        evaluate("conv-small", "ascend", bold(signal={"bits": 5}), trace=trace(method="mine"))
    assert str(error.value) == (
        "the trace of conv-small by mine, seed 0 measured widths that are not limited, and method "
        "mine has widths of signal 5 bit"
    )


@pytest.mark.parametrize(("name", "bits"), [("bold-8", 8), ("bold-1-1-16", 16)])
def test_bundled_methods_of_limited_widths(name, bits):
    """Under every accounting they are as wide as they say; all else is BOLD's."""
    method, plain = small.method(name), small.method()
    assert {width.bits for _, width in method.widths} == {bits}
    assert (method.tensors, method.kept, method.omits) == (plain.tensors, plain.kept, plain.omits)
    for accounting in ("paper", "full"):
        found = evaluate("conv-small", "ascend", name, accounting=accounting)
        assert found.edges["conv2"].signal_bits == bits
    same = [evaluate("conv-small", "ascend", m, accounting="full") for m in ("bold", "bold-1-1-16")]
    assert same[0].energy == same[1].energy  # `full` has 16 bit everywhere


# What is refused


@pytest.mark.parametrize(
    ("widths", "said"),
    [
        ("signal: {bits: 0}", "widths.signal.bits 0: must be at least 1"),
        ("vote: {bits: 17}", "widths.vote.bits 17: must be at most 16"),
        ("accumulator: {bits: 1}", "widths.accumulator.bits 1: must be at least 2"),
        ("accumulator: {bits: 33}", "widths.accumulator.bits 33: must be at most 32"),
        ("accumulator: {bits: 8, range: 3}", "range 3 is no power of two"),
        ("signal: {bits: 1, rounding: floor}", "one bit is a sign, which is not rounded by floor"),
        ("vote: {bits: 1, rounding: truncate}", "one bit is a sign, which is not rounded by truncate"),
        ("signal: {bits: 8, rounding: up}", "widths.signal.rounding 'up': must be 'nearest', 'stochastic', 'truncate' or 'floor'"),
    ],
)  # fmt: skip
def test_widths_that_are_none_are_one_message(hwmodel, refused, tmp_path, widths, said):
    text = hwmodel("method", "show", "bold")[1].replace("name: bold\n", "name: mine\n")
    (tmp_path / "mine.yaml").write_text(f"{text}widths: {{{widths}}}\n")
    assert said in refused("method", "check", "mine.yaml")


def test_widths_without_boolean_weights_are_refused():
    method = small.method("fp").model_copy(update={"widths": Limits(vote=TensorWidth(bits=8))})
    for use in (
        method.check_references,
        lambda: evaluate("conv-small", "ascend", method),
        lambda: stack(small.network(), method),
    ):
        with pytest.raises(SpecError, match="widths are of Boolean weights, and it has none"):
            use()


def test_boolean_signals_of_a_recipe_have_no_width():
    settings = Settings(small.network(), bold(signal={"bits": 8}), small.training(signal="boolean"))
    with pytest.raises(SpecError, match="signal: boolean of the recipe"):
        train(settings, small.images())
    assert isinstance(settings.method, Method)


# What reports say


def test_reports_say_whose_width_it_is(hwmodel, tmp_path):
    limits = {"signal": {"bits": 5}}
    text = hwmodel("method", "show", "bold")[1].replace("name: bold\n", "name: mine\n")
    (tmp_path / "mine.yaml").write_text(f"{text}widths: {{signal: {{bits: 5}}}}\n")
    held = Limits.model_validate(limits).model_dump()
    write_trace(trace(method="mine", widths=held), tmp_path / "t.json")
    asked = ("conv-small", "--hardware", "ascend", "--accounting", "full", "--method", "mine.yaml")
    code, out, _ = hwmodel("report", *asked, "--trace", "t.json")
    line = next(x for x in out.splitlines() if x.split()[:1] == ["fc4"] and "->" in x)
    assert code == 0 and "5 (method)" in line and "16 -> 10" in line
    _, out, _ = hwmodel("explain", *asked, "--layer", "conv2")
    assert "signal boolean_signal (method mine: 5)" in out
    assert "weight_signal boolean_vote (accounting full: 16)" in out


@pytest.mark.parametrize(
    ("method", "accounting", "mode", "said"),
    [
        ("bold", "paper", "training", "accounting paper"),
        ("bold", "full", "training", ""),
        ("fp", "paper", "training", ""),
        ("bold", "paper", "inference", ""),
        ("bold-8", "paper", "training", ""),
        ("one.yaml", "full", "training", "method one"),
    ],
)
@pytest.mark.parametrize("command", ["report", "compare"])
def test_signals_of_one_bit_are_said_to_have_learned_nothing(
    hwmodel, tmp_path, command, method, accounting, mode, said
):
    text = hwmodel("method", "show", "bold")[1].replace("name: bold\n", "name: one\n")
    (tmp_path / "one.yaml").write_text(f"{text}widths: {{signal: {{bits: 1}}}}\n")
    option = "--method" if command == "report" else "--methods"
    code, out, err = hwmodel(
        command, "mlp-784-512-512-10", "--hardware", "ascend", option, method,
        "--accounting", accounting, "--mode", mode,
    )  # fmt: skip
    assert code == 0, err
    sentence = "Signals of 1 bit, as"
    assert (f"{sentence} {said} has them" in out) if said else (sentence not in out)


def test_what_no_price_knows_of_a_rounding_is_listed(hwmodel, tmp_path):
    text = hwmodel("method", "show", "bold")[1].replace("name: bold\n", "name: mine\n")
    odd = "{vote: {bits: 8, scale: step}, accumulator: {bits: 8, rounding: stochastic}}"
    (tmp_path / "mine.yaml").write_text(f"{text}widths: {odd}\n")
    asked = ("mlp-784-512-512-10", "--hardware", "ascend")
    for words in (("report", *asked, "--method"), ("compare", *asked, "--methods")):
        out = hwmodel(*words, "mine.yaml")[1]
        assert "\n  - random bits of stochastic rounding (mine)\n" in out
        assert "\n  - sums that wait at full width for the largest of their tensor (mine)\n" in out
        out = hwmodel(*words, "mine.yaml", "--mode", "inference")[1]
        assert "stochastic" not in out and "wait at full width" not in out
        assert "(bold-8)" not in hwmodel(*words, "bold-8")[1]
