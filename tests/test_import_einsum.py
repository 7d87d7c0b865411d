"""Einsum in ONNX files: products by hand, and of numpy's own counter of operations."""

from math import prod
from pathlib import Path

import numpy as np
import pytest

from hwmodel.importers.load import load_network

pytest.importorskip("onnx")
from onnx import helper

from tests.test_import_onnx import imported, node

DATA = Path(__file__).parent / "data" / "turn2"
LENGTHS = dict(zip("bhijdeng", (1, 3, 5, 7, 11, 13, 17, 19), strict=True))


def dims(term):
    return [LENGTHS[letter] for letter in term]


def einsum(tmp_path, equation, stored=False):
    """The network of an equation whose second operand is an input, or stored."""
    a, b = equation.partition("->")[0].replace(" ", "").split(",")
    nodes = [helper.make_node("Einsum", ["x", "w"], ["y"], equation=equation)]
    given = {"x": dims(a)} | ({} if stored else {"w": dims(b)})
    return imported(tmp_path, nodes, given, {"w": tuple(dims(b))} if stored else {})


def by_numpy(equation):
    """Multiplications with additions that numpy counts of a product of two, half of its FLOP."""
    a, b = equation.partition("->")[0].split(",")
    operands = [np.empty(dims(term)) for term in (a, b)]
    said = np.einsum_path(equation, *operands, optimize=False)[1]
    return float(said.partition("Naive FLOP count:")[2].split()[0]) / 2


def test_C12_scores_of_attention():
    found = load_network(DATA / "c_einsum.onnx").nodes()
    assert {n.layer.kind for n in found} == {"source", "reshape", "attention-scores"}
    assert sum(n.macs for n in found) == 4 * 64 * 64 * 32


@pytest.mark.parametrize(
    "equation",
    ["bhid,bhjd->bhij", "bihd,bjhd->bhij", "bhij,bjhd->bihd", "bid,bjd->bij", "bhid, bhed -> bhie"],
)
def test_products_of_two_tensors(tmp_path, equation):
    found = einsum(tmp_path, equation)
    assert sum(n.macs for n in found) == pytest.approx(
        by_numpy(equation.replace(" ", "")), rel=0.01
    )
    letters = set(equation) - set(", ->")
    assert sum(n.macs for n in found) == prod(LENGTHS[letter] for letter in letters)
    assert "uncounted" not in {n.layer.kind for n in found}


@pytest.mark.parametrize(
    ("equation", "kind"),
    [
        ("bid,de->bie", "linear"),
        ("bid,ed->bie", "linear"),
        ("bihd,hde->bie", "linear"),  # what joins the heads again
        ("bid,dhe->bhie", "linear"),
        ("bhid,hde->bhie", "attention-scores"),  # a matrix for each head
    ],
)
def test_products_with_weights(tmp_path, equation, kind):
    found = einsum(tmp_path, equation, stored=True)
    letters = set(equation) - set(",->")
    assert sum(n.macs for n in found) == prod(LENGTHS[letter] for letter in letters)
    weights = prod(dims(equation.partition("->")[0].split(",")[1]))
    assert sum(n.weights + n.other_parameters for n in found) == weights
    assert found[-1].layer.kind == kind


def test_attention_in_two_equations(tmp_path):
    """Weights of a softmax may be the second operand."""
    for second in ("bhij,bjhd->bihd", "bjhd,bhij->bihd"):
        order = ["p", "v"] if second.startswith("bhij") else ["v", "p"]
        nodes = [
            helper.make_node("Einsum", ["q", "k"], ["s"], equation="bihd,bjhd->bhij"),
            node("Softmax", "s", "p", axis=-1),
            helper.make_node("Einsum", order, ["y"], equation=second),
        ]
        given = {"q": dims("bihd"), "k": dims("bjhd"), "v": dims("bjhd")}
        found = imported(tmp_path, nodes, given)
        kinds = [n.layer.kind for n in found if n.layer.kind not in ("source", "reshape")]
        assert kinds == ["attention-scores", "activation", "attention-context"]
        assert sum(n.macs for n in found) == 2 * 3 * 5 * 7 * 11


def test_letters_in_the_place_of_dots(tmp_path):
    for equation in ("...id,...jd->...ij", "...id,...jd"):
        nodes = [helper.make_node("Einsum", ["x", "w"], ["y"], equation=equation)]
        found = imported(tmp_path, nodes, {"x": dims("bhid"), "w": dims("bhjd")})
        assert sum(n.macs for n in found if n.layer.kind == "attention-scores") == 3 * 5 * 7 * 11


def test_products_element_by_element(tmp_path):
    found = einsum(tmp_path, "bhid,bhid->bhid")
    assert [n.layer.kind for n in found] == ["source", "multiply"]


@pytest.mark.parametrize("equation", ["bii->bi", "bid->bd", "bid,bjd->bi", "bid,bjd,bed->bije"])
def test_what_is_no_product_of_two_is_listed(tmp_path, equation):
    terms = equation.partition("->")[0].split(",")
    names = ["x", "w", "v"][: len(terms)]
    nodes = [helper.make_node("Einsum", names, ["y"], equation=equation)]
    given = dict(zip(names, map(dims, terms), strict=True))
    found = imported(tmp_path, nodes, given)
    assert [n.layer.operator for n in found if n.layer.kind == "uncounted"] == ["Einsum"]
