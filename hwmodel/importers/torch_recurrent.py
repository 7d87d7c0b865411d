"""ATen operators lstm, gru, rnn_tanh and rnn_relu, of several layers and both directions.

Source: docs.pytorch.org, "LSTM", "GRU", "RNN": of each layer and direction the weights of the input
and of the state, two biases, and the weights of a projection.
"""

from __future__ import annotations

from functools import partial
from typing import cast

from hwmodel.graph.layers import Concat
from hwmodel.graph.layers.recurrent import Cell
from hwmodel.importers.graph import Constant, Operand, Value, as_value
from hwmodel.importers.recurrent import Steps, Way, last_step, recurrent
from hwmodel.importers.torch_ran import Ran

__all__ = ["RECURRENT"]


def _recurrent(cell: str, ran: Ran) -> list[Operand] | None:
    """Convert each layer; packed sequences, each as long as it is, have no model.

    Outputs are those of all steps of the last layer, the last of each layer, and cell states.
    """
    parameters = ran.argument("params")
    if "batch_sizes" in ran.fields or not all(isinstance(p, Constant) for p in parameters):
        return None
    given = ran.argument("hx")
    given = given if isinstance(given, list) else [given]
    layers, directions = ran.argument("num_layers"), 1 + bool(ran.argument("bidirectional"))
    each = len(parameters) // (layers * directions)
    biases = 2 * bool(ran.argument("has_biases"))
    x, found = ran.value, []
    for layer in range(layers):
        ways = [
            _way(parameters[(layer * directions + way) * each :][:each], biases)
            for way in range(directions)
        ]
        name = f"{ran.name}.l{layer}" if layers > 1 else ran.name
        made = recurrent(ran.graph, name, x, cast(Cell, cell), ways)
        found.append(made)
        whole = (*x.known[:-1], made.output.shape[0])
        x = Value(whole, made.output.layer, made.output.shape)
    _states(ran, given)
    outputs: list[Operand] = [Value(ran.dims[0], x.layer, x.shape)]
    for index in range(1, len(ran.dims)):
        outputs.append(_last(ran, found, index) if index in ran.taken else Constant(()))
    return outputs


def _way(parameters: list[Constant], biases: int) -> Way:
    projection = parameters[2 + biases] if len(parameters) > 2 + biases else None
    return Way(parameters[0], parameters[1], tuple(parameters[2 : 2 + biases]), projection)


def _last(ran: Ran, found: list[Steps], index: int) -> Value:
    """What all layers give last, one after the other: their outputs, or the states of cells."""
    ends = [
        last_step(ran.graph, ran.name, made.ends if index == 1 else made.cells, None)
        for made in found
    ]
    if len(ends) == 1:
        return Value(ran.dims[index], ends[0].layer, ends[0].shape)
    return ran.graph.put(Concat, f"{ran.name}.last", [end.layer for end in ends], ran.dims[index])


def _states(ran: Ran, given: list[Operand]) -> None:
    """Add states that are learned; list the way back to one that is computed, which none counts."""
    for state in given:
        if isinstance(state, Constant) and state.learned:
            as_value(ran.graph, ran.name, state)
        elif isinstance(state, Value):
            layer = ran.graph.layer(ran.graph.seen(state))
            if layer is not None and layer.kind != "source":
                operator = f"way back to the initial state of {ran.operator}"
                ran.graph.uncounted(f"{ran.name}.state", operator, [state], state.dims, macs=0)


_CELLS = {"lstm": "lstm", "gru": "gru", "rnn_tanh": "rnn", "rnn_relu": "rnn"}
RECURRENT = {operator: partial(_recurrent, cell) for operator, cell in _CELLS.items()}
