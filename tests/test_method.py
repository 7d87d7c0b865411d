"""Methods: which rule holds for which layer, and what a method's file may not say."""

import re
import warnings
from pathlib import Path

import pytest

from hwmodel import SpecError, evaluate
from hwmodel.errors import SpecWarning
from hwmodel.importers.load import load_network
from hwmodel.model import widths
from hwmodel.model.tasks import workload
from hwmodel.model.workload import Job
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import bundled, load
from hwmodel.specs.method import Method
from hwmodel.views.catalogue import checked
from hwmodel.work.work import Multiply
from tests.rows import merged
from tests.specs import ACCOUNTING, METHOD, NETWORK, written

PAPER = load(Accounting, "paper")
TENSORS = ("I", "F", "O", "dO", "dI", "dF")
WIDTH = (
    "is no width; give 1 to 64 bit or one of full_precision, preactivation, boolean_signal, "
    "boolean_vote, boolean_sum, border, stated, or a format"
)
MAC = ("mac", "mac", "mac")


def treatments(method, accounting=PAPER, network="vgg-small"):
    """By layer with weights: bits of I F O dO dI dF, and the arithmetic of the three passes.

    Bits as the loop nests have them, None for a tensor that does not move.
    """
    method, found = load(Method, method), {}
    nodes = load_network(network).nodes(frozenset(method.omits))
    edges = widths.edges(method, nodes, accounting)
    for node in nodes:
        bits = {}
        for _, work, _ in workload((node,), edges, Job(method, accounting, 1, "training")):
            if isinstance(work, Multiply):
                bits |= dict(zip(work.nest.tensors, work.problem.bits, strict=True))
        if bits:
            arithmetic = widths.treatment(method, node, accounting).arithmetic
            passes = ("forward", "backward_input", "backward_weight")
            found[node.layer.name] = (
                tuple(bits.get(tensor) for tensor in TENSORS),
                tuple(arithmetic[phase] for phase in passes),
            )
    return found


@pytest.mark.parametrize(
    ("method", "middle", "arithmetic"),
    [  # forward (I, F, O), backward-input (dO, F, dI), backward-weight (I, dO, dF)
        ("fp", (32,) * 6, MAC),
        ("binaryconnect", (32, 1, 32, 32, 32, 32), ("add", "add", "mac")),
        ("binarynet", (1, 1, 32, 32, 32, 32), ("logic", "add", "add")),
        ("xnor-net", (1, 1, 32, 32, 32, 32), ("logic", "add", "add")),
        ("bold", (1,) * 6, ("logic", "accumulate", "accumulate")),
        ("bold-bn", (1,) * 6, ("logic", "accumulate", "accumulate")),
    ],
)
def test_widths_and_arithmetic_are_the_source_s(method, middle, arithmetic):
    found = treatments(method)
    first, last = found.pop("conv1"), found.pop("fc3")
    assert first[1] == last[1] == MAC
    assert set(found.values()) == {(middle, arithmetic)}
    assert len(found) == 7
    if method in ("bold", "bold-bn"):  # tensors at the border are as wide as the neighbour needs
        assert first[0] == (32, 32, 1, 1, None, 32)
        assert last[0][4] == 1
    else:
        assert first[0][:4] == (32, 32, 32, 32)
        assert (last[0][1], last[0][5]) == (32, 32)


def test_named_widths_are_those_of_the_accounting(tmp_path):
    accounting = load(
        Accounting,
        written(
            tmp_path,
            ACCOUNTING,
            ("boolean_signal_bits: 1", "boolean_signal_bits: 5"),
            ("boolean_vote_bits: 1", "boolean_vote_bits: 7"),
            ("border_bits: 1", "border_bits: 3"),
            ("preactivation_bits: 32", "preactivation_bits: 11"),
        ),
    )
    assert treatments("bold", accounting)["conv2"][0] == (1, 1, 1, 5, 5, 7)
    assert treatments("bold", accounting)["conv1"][0] == (32, 32, 1, 5, None, 32)
    assert treatments("binarynet", accounting)["conv2"][0] == (1, 1, 11, 32, 32, 32)


def test_the_first_rule_that_matches_holds(tmp_path):
    network = written(tmp_path, NETWORK, name="net.yaml")
    rule = "  - {where: {kind: [conv], position: [middle]}, precision: fp, source: me}\n"
    before = written(tmp_path, METHOD, ("layers:\n", "layers:\n" + rule), name="before.yaml")
    after = written(tmp_path, METHOD, ("tensors:", rule + "tensors:"), name="after.yaml")
    assert treatments(str(before), network=network)["conv2"][1] == MAC
    assert treatments(str(after), network=network)["conv2"][1] == ("logic", "add", "add")


def test_every_property_of_a_rule_must_match(tmp_path):
    network = written(tmp_path, NETWORK, name="net.yaml")
    rule = "  - {where: {kind: [linear], position: [middle]}, precision: fp, source: me}\n"
    method = written(tmp_path, METHOD, ("layers:\n", "layers:\n" + rule))
    assert treatments(str(method), network=network)["conv2"][1] == ("logic", "add", "add")


def test_a_rule_changes_what_it_states_of_the_precision_it_takes_over(tmp_path):
    rule = "{where: {position: [first, last]}, precision: fp, source: me}"
    changed = rule.replace("fp,", "fp, weight_signal: 3, arithmetic: {backward_input: add},")
    bits, arithmetic = treatments(str(written(tmp_path, METHOD, (rule, changed))))["fc3"]
    assert (bits[1], bits[5]) == (32, 3)
    assert arithmetic == ("mac", "add", "mac")


def test_extra_work_is_done_where_it_is_said(tmp_path):
    network = written(tmp_path, NETWORK, name="net.yaml")
    somewhere = (
        "what: scaling, where: {kind: [conv, linear]}",
        "what: scaling, where: {kind: [linear]}",
    )
    report = evaluate(network, "ascend", written(tmp_path, METHOD, somewhere), accounting="paper")
    extra = [r for r in merged(report) if r.component == "elementwise"]
    assert [(r.layer, r.tensor, r.accesses, r.bits) for r in extra] == [("fc1", "scaling", 10, 320)]


def test_a_layer_without_a_rule_is_an_error_that_names_it(tmp_path):
    path = written(tmp_path, METHOD, ("  - weights:", "  - where: {kind: [linear]}\n    weights:"))
    with pytest.raises(SpecError) as caught:
        evaluate(written(tmp_path, NETWORK, name="net.yaml"), "ascend", path, accounting="paper")
    sentence = "method mine: no rule of its layers holds for conv2 (kind conv, position middle)"
    assert str(caught.value) == sentence


@pytest.mark.parametrize("precision", ["fq", "file.yaml"])
def test_a_precision_is_a_bundled_method(tmp_path, monkeypatch, precision):
    monkeypatch.chdir(tmp_path)
    path = written(tmp_path, METHOD, ("precision: fp", f"precision: {precision}"))
    for use in (
        lambda: evaluate("vgg-small", "ascend", path, accounting="paper"),
        lambda: checked("method", str(path)),
    ):
        with pytest.raises(SpecError) as caught:
            use()
        known = ", ".join(sorted(bundled(Method)))
        line = 1 + path.read_text().partition("precision:")[0].count("\n")
        said = f"no method is called {precision!r}: known: {known}"
        assert str(caught.value) == f"{path}:{line}: layers.1.precision: {said}"


@pytest.mark.parametrize("name", bundled(Method))
def test_references_of_bundled_methods_come_to_an_end(name):
    assert {"conv1", "conv2", "fc3"} <= set(treatments(name))


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("weights: 1", "weights: 0", f":7: layers.2.weights: 0 {WIDTH}"),
        ("weights: 1", "weights: 65", f":7: layers.2.weights: 65 {WIDTH}"),
        ("weights: 1", "weights: 1.5", ":7: layers.2: a logic operation has whole bits"),
        ("weights: 1", "weights: 0.5", f":7: layers.2.weights: 0.5 {WIDTH}"),
        ("weights: 1", "weights: mxpf4",
         f":7: layers.2.weights: 'mxpf4' {WIDTH}; did you mean 'mxfp4'?"),
        ("weights: 1", "weights: true", f":7: layers.2.weights: True {WIDTH}"),
        ("weights: 1", "weights: full", f":7: layers.2.weights: 'full' {WIDTH}"),
        ("weights: 1", "weights: [1]", f":7: layers.2.weights: [1] {WIDTH}"),
        ("bits: 1", "bits: 0", f":13: tensors.1.bits: 0 {WIDTH.replace(', or', ', input, or')}"),
        ("bits: 1, ", "", ":13: tensors.1.bits is missing"),
        ("    weight_signal: full_precision\n", "",
         ":7: layers.2: says nothing of weight_signal, and names no precision"),
        ("forward: logic, ", "", ":7: layers.2: says nothing of forward, and names no precision"),
        ("forward: logic", "forward: xnor",
         ":9: layers.2.arithmetic.forward 'xnor': must be 'mac', 'int-mac', 'add', 'int-add', 'shift-add', "
         "'logic' or 'accumulate'"),
        ("[first, last]", "[frist]",
         ":6: layers.1.where.position.1 'frist': must be 'first', 'middle' or 'last'"),
        ("[first, last]", "first", ":6: layers.1.where.position 'first': must be a list"),
        ("[first, last]", "[]", ":6: layers.1.where.position a list of 0: must have at least 1"),
        ("position", "positon",
         ":6: layers.1.where.positon is not a field; did you mean 'position'?"),
        ("what: scaling, ", "", ":17: extra_work.1.what is missing"),
        ("layers:", "colour: red\nlayers:", ":5: colour 'red': must match ^#[0-9a-fA-F]{6}$"),
    ],
)  # fmt: skip
def test_a_method_that_cannot_be_is_refused_in_one_sentence(tmp_path, old, new, sentence):
    path = written(tmp_path, METHOD, (old, new))
    with pytest.raises(SpecError) as caught:
        load(Method, path)
    assert str(caught.value) == f"{path}{sentence}"


@pytest.mark.parametrize(
    ("old", "new", "doubt"),
    [
        ("[activation]", "[activaton]", "of kind 'activaton'; did you mean 'activation'?"),
        ("[activation]", "[activation], feeds: [con]", "of kind 'con'; did you mean 'conv'?"),
        ("[activation]", "[activation], function: [rellu]",
         "of function 'rellu'; did you mean 'relu'?"),
        ("extra_work:", "omits: [batchnorm]\nextra_work:",
         "of kind 'batchnorm'; did you mean 'batch-norm'?"),
        ("[activation]", "[activation], role: [anything], function: [relu], feeds: [linear]", ""),
    ],
)  # fmt: skip
def test_a_rule_for_what_no_layer_is_is_told(hwmodel, tmp_path, old, new, doubt):
    """It holds for no layer, so a word that is misspelt would change numbers in silence."""
    path = written(tmp_path, METHOD, (old, new))
    code, _, err = hwmodel("method", "check", path)
    assert code == 0
    assert err == (f"hwmodel: warning: method mine: no layer is {doubt}\n" if doubt else "")


def test_the_rules_of_bundled_methods_are_for_layers_that_there_are():
    assert not [doubt for name in bundled(Method) for doubt in widths.doubts(load(Method, name))]


def test_a_method_that_is_its_own_teacher_s_method_ends(tmp_path, monkeypatch):
    """The teacher runs forward alone, so that nobody asks for its teacher."""
    monkeypatch.chdir(tmp_path)
    teacher = "teacher: {network: mlp-784-512-512-10, method: mine.yaml, source: me}\n"
    Path("mine.yaml").write_text(METHOD + teacher)
    report = evaluate("mlp-784-512-512-10", "ascend", "mine.yaml", accounting="paper")
    assert len(list(widths.method_specs(report.method))) >= 3


UNREAD = """version: 1
name: mine
title: Mine
sources: {own: "own choice"}
layers:
  - {where: {position: [first, last]}, precision: fp, source: own}
  - {precision: fp, weights: 4, inputs: 8, arithmetic: {forward: int-mac}, source: own}
tensors:
  - {where: {kind: [activation, max-pool]}, bits: 4, signal: full_precision, source: own}
  - {bits: full_precision, signal: full_precision, source: own}
"""


def test_inputs_wider_than_all_that_is_read_are_told_and_others_are_not(tmp_path):
    """The second of three convolutions reads what a pool gives: 4 bit, or 8."""
    said = (
        "method mine: inputs 8 of rule 2 of layers changes nothing in this network: what conv2 "
        "reads has 4 bit; how wide a tensor is, rules of tensors say"
    )
    net = written(tmp_path, NETWORK, name="net.yaml")
    path = tmp_path / "mine.yaml"
    path.write_text(UNREAD)
    with pytest.warns(SpecWarning, match=re.escape(said)):
        before = evaluate(net, "ascend", path, accounting="full")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for old, new in (("inputs: 8", "inputs: 4"), ("bits: 4", "bits: 8"), ("inputs: 8, ", "")):
            path.write_text(UNREAD.replace(old, new))
            after = evaluate(net, "ascend", path, accounting="full")
            assert (after.energy == before.energy) == (old != "bits: 4")
