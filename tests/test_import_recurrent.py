"""Recurrent layers of ONNX files: counts by hand, of shapes that are all different."""

from pathlib import Path

import pytest

from hwmodel.errors import ShapeError, SpecError
from hwmodel.importers.load import load_network

pytest.importorskip("onnx")
from tests.test_import_onnx import imported, node

DATA = Path(__file__).parent / "data" / "turn2"
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
T, I, H = 7, 3, 5  # noqa: E741


def stored(operator, directions=1, **more):
    rows = GATES[operator] * H
    return {"w": (directions, rows, I), "r": (directions, rows, H)} | more


def total(nodes, what="macs"):
    if what == "macs":
        return sum(n.macs for n in nodes)
    return sum(n.weights + n.other_parameters for n in nodes)


def test_C8_an_lstm_of_a_file():
    """100 steps, four gates of 64 from 64 inputs and 64 features of the step before."""
    found = load_network(DATA / "c_lstm.onnx").nodes()
    assert [n.layer.kind for n in found] == ["linear", "recurrence"]
    assert total(found) == 100 * 4 * 64 * (64 + 64)
    assert total(found, "parameters") == 2 * 4 * 64 * 64


@pytest.mark.parametrize("operator", GATES)
@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("layout", [0, 1])
def test_cells_directions_and_layouts(tmp_path, operator, directions, layout):
    """A direction: T g H (I + H) MACs, g H (I + H) weights and two biases of g H."""
    gates = GATES[operator]
    way = "bidirectional" if directions == 2 else "forward"
    nodes = [node(operator, "x w r b", hidden_size=H, direction=way, layout=layout)]
    x = [T, 1, I] if layout == 0 else [1, T, I]
    tensors = stored(operator, directions, b=(directions, 2 * gates * H))
    found = imported(tmp_path, nodes, {"x": x}, tensors, opset=14)
    assert total(found) == directions * T * gates * H * (I + H)
    assert total(found, "parameters") == directions * gates * H * (I + H + 2)
    assert found[-1].output_shape == (directions * H, T, 1)
    assert not [n for n in found if n.layer.kind == "uncounted"]


@pytest.mark.parametrize(
    ("direction", "places"),
    [("forward", [(T - 1, T)]), ("reverse", [(0, 1)]), ("bidirectional", [(T - 1, T), (0, 1)])],
)
def test_what_is_left_after_the_last_step(tmp_path, direction, places):
    """The way back ends at the first place. A classifier takes the last outputs of both ways."""
    D = len(places)
    nodes = [
        node("LSTM", "x w r", "all h", hidden_size=H, direction=direction),
        node("Transpose", "h", "t", perm=[1, 0, 2]), node("Flatten", "t", "f"),
        node("MatMul", "f v"),
    ]  # fmt: skip
    tensors = stored("LSTM", D, v=(D * H, 11))
    found = imported(tmp_path, nodes, {"x": [T, 1, I]}, tensors)
    cuts = [(n.layer.start, n.layer.stop) for n in found if n.layer.kind == "slice"]
    assert cuts == places
    assert (found[-1].layer.kind, found[-1].macs) == ("linear", D * H * 11)


def test_layers_one_after_the_other_as_exporters_write_them(tmp_path):
    """The axis of the directions is squeezed between two layers."""
    nodes = [
        node("LSTM", "x w r", "a", hidden_size=H), node("Squeeze", "a one", "s"),
        node("LSTM", "s v u", "b", hidden_size=2), node("Squeeze", "b one"),
    ]  # fmt: skip
    tensors = stored("LSTM", v=(1, 8, H), u=(1, 8, 2), one=((1,), 7, [1]))
    found = imported(tmp_path, nodes, {"x": [T, 1, I]}, tensors)
    assert total(found) == T * (4 * H * (I + H) + 8 * (H + 2))
    assert found[-1].output_shape == (2, T, 1)


def test_weights_that_two_take_are_stored_once(tmp_path):
    nodes = [
        node("RNN", "x w r", "a", hidden_size=I), node("Squeeze", "a one", "s"),
        node("RNN", "s w r", hidden_size=I),
    ]  # fmt: skip
    tensors = {"w": (1, I, I), "r": (1, I, I), "one": ((1,), 7, [1])}
    found = imported(tmp_path, nodes, {"x": [T, 1, I]}, tensors)
    assert (total(found), total(found, "parameters")) == (2 * T * 2 * I * I, 2 * I * I)


@pytest.mark.parametrize("batch", [1, 2])
def test_images_read_column_by_column(tmp_path, batch):
    """CRNN: a map (4, 3, 20) is 20 steps of 12 features, whatever the batch."""
    nodes = [
        node("Transpose", "x", "t", perm=[3, 0, 1, 2]), node("Reshape", "t to", "s"),
        node("GRU", "s w r", hidden_size=H),
    ]  # fmt: skip
    tensors = {"w": (1, 3 * H, 12), "r": (1, 3 * H, H), "to": ((3,), 7, [20, batch, 12])}
    found = imported(tmp_path, nodes, {"x": [batch, 4, 3, 20]}, tensors)
    assert total(found) == 20 * 3 * H * (12 + H)


def test_what_a_recurrent_layer_does_not_count_is_listed(tmp_path):
    """Peepholes are 3 H parameters and as many products a step; a state that comes from a layer has
    a way back."""
    nodes = [
        node("Relu", "h", "s"),
        node("LSTM", "x w r  s c p".replace("  ", " none none "), hidden_size=H),
    ]
    nodes[1].input[3] = nodes[1].input[4] = ""
    given = {"x": [T, 1, I], "h": [1, 1, H], "c": [1, 1, H]}
    found = imported(tmp_path, nodes, given, stored("LSTM", p=(1, 3 * H)))
    listed = {n.layer.operator: n for n in found if n.layer.kind == "uncounted"}
    assert set(listed) == {"peepholes of LSTM", "way back to the initial state of LSTM"}
    peepholes = listed["peepholes of LSTM"]
    assert (peepholes.other_parameters, peepholes.layer.known_macs) == (3 * H, 3 * H * T)


def test_states_that_are_inputs_cost_nothing_more(tmp_path):
    nodes = [node("GRU", "x w r b n h", hidden_size=H)]
    nodes[0].input[3] = nodes[0].input[4] = ""
    found = imported(tmp_path, nodes, {"x": [T, 1, I], "h": [1, 1, H]}, stored("GRU"))
    assert [n.layer.kind for n in found] == ["source", "linear", "recurrence"]


@pytest.mark.parametrize(
    ("x", "w", "r", "said"),
    [
        ([T, 1, I], (1, 20, I), (1, 15, H), "are not (4 H, I) and (4 H, H)"),
        ([T, 1, I], (1, 18, I), (1, 18, H), "are not (4 H, I) and (4 H, H)"),
        ([T, 1, I], (1, 20, I), (1, 20, 4), "are not (4 H, I) and (4 H, H)"),
        ([T, 1, I + 1], (1, 20, I), (1, 20, H), f"are for {I} features, its input has {I + 1}"),
        ([T, 1, I], (1, 20, I), (2, 20, H), "1 and 2 directions, its direction is forward"),
        ([T, 1, I], (3, 20, I), (3, 20, H), "3 and 3 directions"),
    ],
)
def test_weights_that_do_not_fit_end_in_a_message(tmp_path, x, w, r, said):
    nodes = [node("LSTM", "x w r", hidden_size=H)]
    with pytest.raises((ShapeError, SpecError)) as error:
        imported(tmp_path, nodes, {"x": x}, {"w": w, "r": r})
    assert said in str(error.value)
    assert "LSTM y" in str(error.value)


def test_computed_weights_have_no_model(tmp_path):
    given = {"x": [T, 1, I], "w": [1, 20, I]}
    found = imported(tmp_path, [node("LSTM", "x w r", hidden_size=H)], given, {"r": (1, 20, H)})
    assert [n.layer.kind for n in found] == ["source", "uncounted"]
