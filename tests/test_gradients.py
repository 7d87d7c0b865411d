"""Gradients that no product sums up, by hand; and what of every pass of every kind of layer is counted."""

import random
import re
from typing import get_args

import pytest

from hwmodel import evaluate
from hwmodel.graph.layers import Layer
from hwmodel.graph.network import Network
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import load, validate
from hwmodel.specs.method import Method
from tests.rows import merged
from tests.test_architecture import PACKAGE

FULL = load(Accounting, "full")
N = 2  # images
CONV = {"kind": "conv", "channels": 4, "kernel": 3, "padding": 1}
LAST = {"name": "last", "kind": "linear", "features": 3, "over": "all"}


def reported(*layers, shape=(4, 4, 4), method="fp", accounting=FULL, mode="training"):
    network = {"version": 1, "name": "net", "title": "A network", "input": list(shape)}
    found = validate(Network, network | {"layers": list(layers)}, "net")
    return evaluate(found, "ascend", method, accounting=accounting, batch=N, mode=mode)


def counted(report, layer, phase, level="L3"):
    """Tensor, accesses and bits of a layer's elementwise rows at a level, in their order."""
    return [
        (row.tensor, row.accesses, row.bits)
        for row in merged(report)
        if (row.layer, row.phase, row.level) == (layer, phase, level)
        and row.component == "elementwise"
    ]


def operations(report, layer, phase):
    return {
        row.tensor: row.operations
        for row in merged(report)
        if (row.layer, row.phase, row.level) == (layer, phase, "compute")
        and row.component == "elementwise"
    }


class Memory:
    """Words that count how often they are read and written."""

    def __init__(self):
        self.words, self.reads, self.writes = {}, 0, 0

    def read(self, at):
        self.reads += 1
        return self.words[at]

    def write(self, at, value):
        self.writes += 1
        self.words[at] = value


TOKENS, VOCABULARY, FEATURES = 7, 11, 5
TABLE = {"name": "table", "kind": "embedding", "vocabulary": VOCABULARY, "features": FEATURES}


def walked():
    """The gradient of a table word by word: what is read of dO, read of dF, written to dF, added."""
    numbers = random.Random(3)
    looked_up = [[numbers.randrange(VOCABULARY) for _ in range(TOKENS)] for _ in range(N)]
    signal, gradient, added = Memory(), Memory(), 0
    signal.words = {
        (n, t, f): numbers.randrange(100)
        for n in range(N)
        for t in range(TOKENS)
        for f in range(FEATURES)
    }
    for row in range(VOCABULARY):
        for f in range(FEATURES):
            gradient.write((row, f), 0)
    for n, row_of in enumerate(looked_up):
        for t, row in enumerate(row_of):
            for f in range(FEATURES):
                gradient.write((row, f), gradient.read((row, f)) + signal.read((n, t, f)))
                added += 1
    for (row, f), value in gradient.words.items():  # the product with the one-hot input
        hits = [(n, t) for n in range(N) for t in range(TOKENS) if looked_up[n][t] == row]
        assert value == sum(signal.words[n, t, f] for n, t in hits)
    return signal.reads, gradient.reads, gradient.writes, added


def test_the_gradient_of_a_table_is_zeroed_and_added_to_row_by_row():
    report = reported(TABLE, LAST, shape=(1, TOKENS, 1))
    signal_reads, reads, writes, added = walked()
    whole, rows = 11 * 5, 2 * 7 * 5
    assert counted(report, "table", "backward_weight") == [
        ("dF", whole, 32 * whole),
        ("dO", rows, 32 * rows),
        ("dF", 2 * rows, 2 * 32 * rows),
    ]
    assert (signal_reads, reads, writes, added) == (rows, rows, whole + rows, rows)
    assert operations(report, "table", "backward_weight") == {"add": added}
    assert not counted(report, "table", "backward_input")  # numbers of tokens have no signal
    # reads come in through L0-A, writes leave through L0-C
    assert counted(report, "table", "backward_weight", "L0-A") == [
        ("dO", rows, 32 * rows),
        ("dF", rows, 32 * rows),
    ]
    assert counted(report, "table", "backward_weight", "L0-C") == [
        ("dF", whole, 32 * whole),
        ("dF", rows, 32 * rows),
    ]


def test_the_optimizer_reads_as_much_of_the_table_s_gradient_as_was_written():
    report = reported(TABLE, LAST, shape=(1, TOKENS, 1))
    (read,) = [
        row.accesses
        for row in merged(report)
        if (row.layer, row.phase, row.tensor, row.level) == ("table", "update", "dF", "L3")
    ]
    assert read == counted(report, "table", "backward_weight")[0][1] == VOCABULARY * FEATURES


def narrow():
    """Full precision, but every tensor is 8 bit wide, its signal 16, and a sum is always kept."""
    method = load(Method, "fp")
    rule = {"where": {}, "bits": 8, "signal": 16, "source": "here"}
    kept = {"where": {}, "bits": 8, "source": "here"}
    values = method.model_dump(mode="json", exclude_none=True)
    return validate(Method, values | {"tensors": [rule], "kept": [kept]}, "narrow")


def test_a_table_s_gradient_is_a_full_precision_word_under_narrow_signals():
    report = reported(TABLE, LAST, shape=(1, TOKENS, 1), method=narrow())
    rows = N * TOKENS * FEATURES
    assert counted(report, "table", "backward_weight")[1:] == [
        ("dO", rows, 16 * rows),
        ("dF", 2 * rows, 2 * 32 * rows),
    ]
    assert operations(report, "table", "backward_weight") == {"add": rows}


def test_a_lookup_reads_a_row_of_full_precision_words_for_every_token():
    """2 images of 7 tokens take 14 rows of 5 words, and hand them on as 70 numbers of 8 bit."""
    method = narrow().model_copy(update={"kept": ()})
    report = reported(TABLE, LAST, shape=(1, TOKENS, 1), method=method)
    tokens, *moved = counted(report, "table", "forward")
    assert tokens[:2] == ("I", 14)
    assert moved == [("F", 70, 70 * 32), ("O", 70, 70 * 8)]
    assert operations(report, "table", "forward") == {}


def test_a_constant_has_no_input_of_which_a_sum_could_be_kept():
    report = reported({"name": "conv", **CONV}, CONSTANT, SUM, LAST, method=narrow())
    assert counted(report, "constant", "backward_weight")[1] == ("dO", 2 * 16, 16 * 2 * 16)
    assert {row.phase for row in merged(report) if row.layer == "constant"} == {
        "backward_weight",
        "update",
    }


@pytest.mark.parametrize(
    "changed", [{"mode": "inference"}, {"accounting": load(Accounting, "paper")}]
)
def test_nothing_of_it_without_a_way_back_or_without_streams(changed):
    report = reported(TABLE, LAST, shape=(1, TOKENS, 1), **changed)
    assert not counted(report, "table", "backward_weight")


CONSTANT = {"name": "constant", "kind": "source", "shape": [4, 1, 4], "learned": True}
SUM = {"name": "sum", "kind": "add", "inputs": ["conv", "constant"]}


def test_the_gradient_of_a_learned_constant_is_the_sum_over_images():
    report = reported({"name": "conv", **CONV}, CONSTANT, SUM, LAST)
    assert counted(report, "constant", "backward_weight") == [
        ("dF", 16, 32 * 16),
        ("dO", 2 * 16, 32 * 2 * 16),
    ]
    assert operations(report, "constant", "backward_weight") == {"add": 2 * 16}
    assert not counted(report, "constant", "forward")


def test_what_comes_back_to_a_tensor_added_to_many_places_is_summed():
    """(4, 1, 4) added to (4, 4, 4): 64 signals of an image make 16."""
    report = reported({"name": "conv", **CONV}, CONSTANT, SUM, LAST)
    assert counted(report, "sum", "backward_input") == [
        ("dO", 2 * 64, 32 * 2 * 64),
        ("dI2", 2 * 16, 32 * 2 * 16),
    ]
    assert operations(report, "sum", "backward_input") == {"add": 2 * 64}
    fixed = reported({"name": "conv", **CONV}, CONSTANT | {"learned": False}, SUM, LAST)
    assert not counted(fixed, "sum", "backward_input")  # nobody waits for it


@pytest.mark.parametrize(
    ("method", "bits", "operation"),
    [("fp", 32, {"add": 144}), ("bold", 16, {"logic": 144 * (2 * 16 - 1)})],
)
def test_layers_that_share_weights_add_their_gradients_up(method, bits, operation):
    """4 filters of 4 x 3 x 3 weights are 144; votes of Boolean ones have 16 bit."""
    layers = [{"name": name, **CONV} for name in ("first", "owner", "sharer")]
    layers[2]["shares"] = "owner"
    report = reported(*layers, LAST, method=method)
    assert counted(report, "sharer", "backward_weight") == [("dF", 3 * 144, 3 * bits * 144)]
    assert operations(report, "sharer", "backward_weight") == operation
    assert not counted(report, "owner", "backward_weight")


def test_a_learned_factor_before_every_other_layer_has_a_gradient_and_sends_no_signal():
    report = reported({"name": "factor", "kind": "scale"}, {"name": "conv", **CONV}, LAST)
    assert counted(report, "factor", "backward_input") == [
        ("dO", 2 * 64, 32 * 2 * 64),
        ("saved I", 2 * 64, 32 * 2 * 64),
    ]
    fixed = {"name": "factor", "kind": "scale", "learned": False}
    assert not counted(reported(fixed, {"name": "conv", **CONV}, LAST), "factor", "backward_input")


# Every kind of layer: what of each pass is counted, as docs/model.md says

PASSES = ("forward", "backward_input", "backward_weight", "update")
ROWS = {"name": "rows", "kind": "reshape", "inputs": ["before"], "shape": [8, 8, 1]}
SCORES = {"kind": "attention-scores", "inputs": ["rows", "rows"], "heads": 2}
WORDS = {"name": "words", "kind": "source", "shape": [1, 3, 1]}
# What stands before the layer, and the layer; it is given (4, 4, 4), and something learned before.
EXAMPLES = {
    "conv": ((), CONV),
    "conv-transpose": ((), {"channels": 4, "kernel": 3}),
    "linear": ((), {"features": 5}),
    "attention-scores": ((ROWS,), SCORES),
    "attention-context": (
        (ROWS, SCORES | {"name": "scores"}), {"inputs": ["scores", "rows"], "heads": 2},
    ),
    "recurrence": ((ROWS,), {"inputs": ["rows"], "cell": "lstm", "features": 2}),
    "step-linear": ((ROWS,), {"inputs": ["rows"], "features": 2}),
    "batch-norm": ((), {}),
    "layer-norm": ((), {}),
    "rms-norm": ((), {}),
    "rotary": ((ROWS,), {"inputs": ["rows"], "heads": 2}),
    "activation": ((), {"function": "prelu"}),
    "spiking": ((), {}),
    "add": (({"name": "other", **CONV},), {"inputs": ["before", "other"]}),
    "multiply": (({"name": "other", **CONV},), {"inputs": ["before", "other"]}),
    "scale": ((), {}),
    "dispatch": ((ROWS,), {"inputs": ["rows", "rows"], "active": 2}),
    "combine": (
        (ROWS, {"name": "sent", "kind": "dispatch", "inputs": ["rows", "rows"], "active": 2}),
        {"inputs": ["sent", "rows"], "active": 2},
    ),
    "scan": (
        (ROWS, {"name": "few", "kind": "slice", "inputs": ["rows"], "start": 0, "stop": 2}),
        {"inputs": ["rows", "rows", "few", "few", "rows"], "states": 2},
    ),
    "embedding": ((WORDS,), {"vocabulary": 9, "features": 4}),
    "max-pool": ((), {"kernel": 2}),
    "average-pool": ((), {"kernel": 2}),
    "global-average-pool": ((), {}),
    "pixel-shuffle": ((), {"factor": 2}),
    "pixel-unshuffle": ((), {"factor": 2}),
    "upsample": ((), {"factor": 2}),
    "concat": (({"name": "other", **CONV},), {"inputs": ["before", "other"]}),
    "slice": ((), {"start": 1, "stop": 3}),
    "reshape": ((), {"shape": [16, 2, 2]}),
    "expand": ((), {"shape": [4, 4, 8]}),
    "source": ((), {"shape": [4, 4, 4], "learned": True}),
    "uncounted": ((), {"operator": "operator", "parameters": 8}),
}  # fmt: skip


PARAMETERS = "scales, shifts, slopes and factors beyond their update"
LISTED = {
    "biases": "biases beyond their update",
    "reading": PARAMETERS,
    "writing": PARAMETERS,
    "statistics": "statistics of norms",
}


def table_of_passes():
    """Cells of the table in docs/model.md, by kind of layer and pass."""
    text = (PACKAGE.parent / "docs" / "model.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"^\| kinds \|.*\n\|[-|]+\n((?:\|.*\n)+)", text, re.MULTILINE)
    found = {}
    for line in table.splitlines():
        kinds, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        for kind in re.findall(r"`([a-z-]+)`", kinds):
            assert kind not in found
            found[kind] = dict(zip(PASSES, cells, strict=True))
    return found


def kinds_of_layers():
    union, _ = get_args(Layer)
    return {get_args(kind.model_fields["kind"].annotation)[0] for kind in get_args(union)}


def test_of_every_kind_of_layer_it_is_said_what_each_pass_costs():
    assert set(table_of_passes()) == kinds_of_layers() == set(EXAMPLES)


@pytest.mark.filterwarnings("ignore:net. not counted:hwmodel.errors.SpecWarning")
@pytest.mark.parametrize("kind", EXAMPLES)
def test_a_pass_is_counted_or_listed_or_costs_nothing_as_it_is_said(kind):
    before, fields = EXAMPLES[kind]
    layer = {"name": "x", "kind": kind, **fields}
    report = reported({"name": "before", **CONV}, *before, layer, LAST)
    passes = {row.phase for row in merged(report) if row.layer == "x" and row.energy > 0}
    for phase, said in table_of_passes()[kind].items():
        word, other = re.match(r"(\w+)\W*(\w*)", said).groups()
        assert word in ("counted", "listed", "with", "nothing"), said
        assert (phase in passes) == (word == "counted"), (phase, said)
        if word == "with":  # counted together with another pass
            assert other in passes
        if word in ("listed", "nothing"):
            assert re.match(rf"{word}: \w", said), f"{said}: gives no reason"
        named = [said.removeprefix("listed: ")] if word == "listed" else []
        named += [LISTED[part] for part in re.findall(r"[;:,] (\w+)[a-z ]* listed", said)]
        for what in named:
            assert any(line.startswith(what) for line in report.not_counted), said


def test_what_is_left_out_of_signals_is_listed_only_where_it_is():
    cut = {"name": "cut", "kind": "slice", "start": 0, "stop": 2}
    rest = {"name": "rest", "kind": "slice", "inputs": ["conv"], "start": 2, "stop": 4}
    joined = {"name": "joined", "kind": "concat", "inputs": ["cut", "rest"]}
    line = "zeros in the signals of tensors that slices take only a part of: 1 tensor"
    conv = {"name": "conv", **CONV}
    assert line in reported(conv, cut, LAST).not_counted
    assert line not in reported(conv, cut, LAST, mode="inference").not_counted
    assert line not in reported(conv, cut, rest, joined, LAST).not_counted  # they take all of it
    tensor = {"name": "tensor", "kind": "source", "shape": [4, 4, 4]}
    for unlearned in ((cut, LAST), (tensor, cut, LAST)):  # without a signal
        assert line not in reported(*unlearned).not_counted


def test_without_streams_sums_of_signals_and_gradients_are_listed():
    layers = [
        {"name": "conv", **CONV}, CONSTANT, SUM, {"name": "twice", "kind": "add", "inputs": ["sum", "sharer"]},
        LAST,
    ]  # fmt: skip
    layers[3:3] = [{"name": "sharer", **CONV, "shares": "conv"}]
    lines = {
        "adding up the signals of tensors that several layers take: 1 tensor",
        "adding up the gradients of weights that several layers share: 1 tensor",
        "summing the gradients of learned constants over the images: 1 tensor",
    }
    assert lines <= set(reported(*layers, accounting=load(Accounting, "paper")).not_counted)
    assert not lines & set(reported(*layers).not_counted)
