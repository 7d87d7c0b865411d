"""Methods: which rule holds for which layer, and what a method's file may not say."""

import pytest

from hwmodel import NameUnknown, SpecError, evaluate
from hwmodel.accounting import Accounting
from hwmodel.catalogue import checked
from hwmodel.files import bundled, load
from hwmodel.method import Method
from hwmodel.network import load_network
from tests.specs import ACCOUNTING, METHOD, NETWORK, written

PAPER = load(Accounting, "paper")
TENSORS = ("I", "F", "O", "dO", "dI", "dF")
WIDTH = "is no width; give 1 to 64 bit or one of full_precision, boolean_signal, boolean_vote, preactivation"
MAC = ("mac", "mac", "mac")


def treatments(method, accounting=PAPER, network="vgg-small"):
    """Widths of I F O dO dI dF and arithmetic of the three passes, by position."""
    found = {}
    for node in load_network(network).nodes():
        if node.layer.weights(node.input_shapes):
            how = load(Method, method).treatment(node, accounting)
            found[node.position] = (
                tuple(how.bits[tensor] for tensor in TENSORS), tuple(how.arithmetic.values())
            )  # fmt: skip
    return found


@pytest.mark.parametrize(
    ("method", "first", "middle", "last", "arithmetic"),
    [  # as forward (I, F, O) / backward-input (dO, F, dI) / backward-weight (I, dO, dF) read
        ("fp", (32,) * 6, (32,) * 6, (32,) * 6, MAC),
        ("binaryconnect", (32,) * 6, (32, 1, 32, 32, 32, 32), (32,) * 6, ("add", "add", "mac")),
        ("binarynet", (32,) * 6, (1, 1, 32, 32, 32, 32), (32,) * 6, ("logic", "add", "add")),
        ("xnor-net", (32,) * 6, (1, 1, 32, 32, 32, 32), (32,) * 6, ("logic", "add", "add")),
        ("bold", (32, 32, 1, 1, 32, 32), (1,) * 6, (32, 32, 1, 1, 1, 32),
         ("logic", "accumulate", "accumulate")),
        ("bold-bn", (32, 32, 1, 1, 32, 32), (1,) * 6, (32, 32, 1, 1, 1, 32),
         ("logic", "accumulate", "accumulate")),
    ],
)  # fmt: skip
def test_widths_and_arithmetic_are_the_source_s(method, first, middle, last, arithmetic):
    assert treatments(method) == {
        "first": (first, MAC), "middle": (middle, arithmetic), "last": (last, MAC)
    }  # fmt: skip


def test_named_widths_are_those_of_the_accounting(tmp_path):
    accounting = load(Accounting, written(
        tmp_path, ACCOUNTING, ("full_precision_bits: 32", "full_precision_bits: 16"),
        ("boolean_signal_bits: 1", "boolean_signal_bits: 5"),
        ("boolean_vote_bits: 1", "boolean_vote_bits: 7"),
        ("preactivation_bits: 32", "preactivation_bits: 11"),
    ))  # fmt: skip
    assert treatments("bold", accounting)["middle"][0] == (1, 1, 1, 5, 5, 7)
    assert treatments("bold", accounting)["first"][0] == (16, 16, 1, 5, 16, 16)
    assert treatments("binarynet", accounting)["middle"][0] == (1, 1, 11, 16, 16, 16)


def test_the_first_rule_that_matches_holds(tmp_path):
    network = written(tmp_path, NETWORK, name="net.yaml")
    rule = "  - {where: {kind: [conv], position: [middle]}, precision: fp, source: me}\n"
    before = written(tmp_path, METHOD, ("rules:\n", "rules:\n" + rule), name="before.yaml")
    after = written(tmp_path, METHOD, ("extra_work", rule + "extra_work"), name="after.yaml")
    assert treatments(str(before), network=network)["middle"] == ((32,) * 6, MAC)
    assert treatments(str(after), network=network)["middle"][0] == (1, 1, 32, 32, 32, 32)


def test_every_property_of_a_rule_must_match(tmp_path):
    network = written(tmp_path, NETWORK, name="net.yaml")
    rule = "  - {where: {kind: [linear], position: [middle]}, precision: fp, source: me}\n"
    method = written(tmp_path, METHOD, ("rules:\n", "rules:\n" + rule))
    assert treatments(str(method), network=network)["middle"][0] == (1, 1, 32, 32, 32, 32)


def test_a_rule_changes_what_it_states_of_the_precision_it_takes_over(tmp_path):
    rule = "{where: {position: [first, last]}, precision: fp, source: me}"
    changed = rule.replace("fp,", "fp, bits: {dI: 3}, arithmetic: {backward_input: add},")
    method = written(tmp_path, METHOD, (rule, changed))
    assert treatments(str(method))["first"] == ((32, 32, 32, 32, 3, 32), ("mac", "add", "mac"))


def test_extra_work_is_done_where_it_is_said(tmp_path):
    network = written(tmp_path, NETWORK, name="net.yaml")
    somewhere = ("what: scaling,", "what: scaling, where: {kind: [linear]},")
    report = evaluate(network, "ascend", written(tmp_path, METHOD, somewhere))
    extra = [
        (r.layer, r.tensor, r.accesses, r.bits) for r in report.rows if r.component == "elementwise"
    ]
    assert extra == [("fc1", "scaling", 10, 320)]


def test_a_layer_without_a_rule_is_an_error_that_names_it(tmp_path):
    path = written(tmp_path, METHOD, ("  - bits:", "  - where: {kind: [linear]}\n    bits:"))
    with pytest.raises(SpecError) as caught:
        evaluate(written(tmp_path, NETWORK, name="net.yaml"), "ascend", path)
    sentence = "method mine: no rule for layer conv2 (kind conv, position middle)"
    assert str(caught.value) == sentence


@pytest.mark.parametrize("precision", ["fq", "file.yaml"])
def test_a_precision_is_a_bundled_method(tmp_path, monkeypatch, precision):
    monkeypatch.chdir(tmp_path)
    path = written(tmp_path, METHOD, ("precision: fp", f"precision: {precision}"))
    for use in (
        lambda: evaluate("vgg-small", "ascend", path),
        lambda: checked("method", str(path)),
    ):
        with pytest.raises(NameUnknown) as caught:
            use()
        assert str(caught.value) == (
            f"no method is called {precision!r}: known: binaryconnect, binarynet, bold, bold-bn, fp, "
            "xnor-net"
        )


@pytest.mark.parametrize("name", bundled(Method))
def test_references_of_bundled_methods_come_to_an_end(name):
    assert set(treatments(name)) == {"first", "middle", "last"}


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("I: 1", "I: 0", f":7: rules.2.bits.I: 0 {WIDTH}"),
        ("I: 1", "I: 65", f":7: rules.2.bits.I: 65 {WIDTH}"),
        ("I: 1", "I: 1.5", f":7: rules.2.bits.I: 1.5 {WIDTH}"),
        ("I: 1", "I: true", f":7: rules.2.bits.I: True {WIDTH}"),
        ("I: 1", "I: full", f":7: rules.2.bits.I: 'full' {WIDTH}"),
        ("I: 1", "I: [1]", f":7: rules.2.bits.I: [1] {WIDTH}"),
        ("I: 1", "J: 1", ":7: rules.2.bits.J 1: must be 'I', 'F', 'O', 'dI', 'dF' or 'dO'"),
        ("I: 1, ", "", ":7: rules.2: says nothing of I, and names no precision"),
        ("forward: logic, ", "", ":7: rules.2: says nothing of forward, and names no precision"),
        ("forward: logic", "forward: xnor",
         ":8: rules.2.arithmetic.forward 'xnor': must be 'mac', 'add', 'logic' or 'accumulate'"),
        ("[first, last]", "[frist]",
         ":6: rules.1.where.position.1 'frist': must be 'first', 'middle' or 'last'"),
        ("[first, last]", "first", ":6: rules.1.where.position 'first': must be a list"),
        ("position", "positon",
         ":6: rules.1.where.positon is not a field; did you mean 'position'?"),
        ("what: scaling, ", "", ":11: extra_work.1.what is missing"),
        ("what: scaling, source: me", "what: scaling", ":11: extra_work.1.source is missing"),
        ("rules:", "colour: red\nrules:", ":5: colour 'red': must match ^#[0-9a-f]{6}$"),
    ],
)  # fmt: skip
def test_a_method_that_cannot_be_is_refused_in_one_sentence(tmp_path, old, new, sentence):
    path = written(tmp_path, METHOD, (old, new))
    with pytest.raises(SpecError) as caught:
        load(Method, path)
    assert str(caught.value) == f"{path}{sentence}"


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("counting: paper", "counting: exakt", ":6: counting 'exakt': must be "),
        ("baseline: fp\n", "", ":1: baseline is missing"),
        ("_bits: 32", "_bits: 0", ":8: full_precision_bits 0: must be at least 1"),
        ("_macs: 0.001", "_macs: -1", ":14: logic_price_macs -1: must be at least 0"),
        ("_macs: 0.001", "_macs: .nan", ":14: logic_price_macs nan: must be finite"),
        ("_macs: 0.001", "_macs: '1e-3'", ":14: logic_price_macs '1e-3': must be a number"),
        ("_macs: 0.001", "_macs: no", ":14: logic_price_macs 'no': must be a number"),
        ("gradient: false", "gradient: no",
         ":7: first_layer_input_gradient 'no': must be true or false"),
        ("gradient: false", "gradient: 0", ":7: first_layer_input_gradient 0: must be true or false"),
        ("[everything else]", "[]", None),
        ("_macs: 0.001", "_macs: 1e-3", None),
    ],
)  # fmt: skip
def test_an_accounting_that_cannot_be_is_refused_in_one_sentence(tmp_path, old, new, sentence):
    path = written(tmp_path, ACCOUNTING, (old, new))
    if sentence is None:
        assert load(Accounting, path).logic_price_macs == 0.001
        return
    with pytest.raises(SpecError) as caught:
        load(Accounting, path)
    assert str(caught.value).startswith(f"{path}{sentence}")


def test_an_accounting_s_baseline_is_checked_with_it(tmp_path):
    path = written(tmp_path, ACCOUNTING, ("baseline: fp", "baseline: bolt"))
    with pytest.raises(NameUnknown) as caught:
        checked("accounting", str(path))
    assert str(caught.value) == "no method is called 'bolt': did you mean 'bold'?"
