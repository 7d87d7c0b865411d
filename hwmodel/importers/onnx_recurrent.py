"""ONNX operators LSTM, GRU and RNN.

Source: onnx.ai, "LSTM", "GRU", "RNN", version 22: parameters of all directions in one tensor each,
gates stacked; both biases of a gate side by side.
"""

from __future__ import annotations

from math import prod
from typing import cast

from hwmodel.errors import ShapeError
from hwmodel.graph.layers.recurrent import GATES, Cell
from hwmodel.importers.graph import Constant, Operand, Value
from hwmodel.importers.onnx_call import Call
from hwmodel.importers.recurrent import Way, last_step, recurrent

__all__ = ["RECURRENT"]

_GIVEN = {5: "initial state", 6: "initial cell state"}  # operands


def _recurrent(call: Call) -> list[Operand] | None:
    """Convert to products of all inputs and what goes from step to step, of each direction.

    All steps of the longest sequence count. A `linear_before_reset` changes no count. Outputs are
    those of all steps, of the last one, and the cell state of the last one.
    """
    W, R, B = (call.constant(i) for i in (1, 2, 3))
    if W is None or R is None or len(W.dims) != 3 or len(R.dims) != 3 or call.computed(3):
        return None
    word = call.text("direction", "forward")
    directions = 2 if word == "bidirectional" else 1
    if {W.dims[0], R.dims[0]} != {directions}:
        raise ShapeError(
            f"its weights {list(W.dims)} and {list(R.dims)} are of {W.dims[0]} and {R.dims[0]} "
            f"directions, its direction is {word}"
        )
    graph, cell = call.graph, cast(Cell, call.operator.lower())
    ways = [
        Way(_of(W, way), _of(R, way), () if B is None else (_of(B, way),) * 2)
        for way in range(directions)
    ]
    made = recurrent(graph, call.name, call.value, cell, ways)
    _others(call, directions * R.dims[-1], prod(made.output.shape[1:]))
    outputs: list[Operand] = [Value(call.dims[0], made.output.layer, made.output.shape)]
    for dims, layers in zip(call.dims[1:], (made.ends, made.cells), strict=False):
        outputs.append(last_step(graph, call.name, layers, dims, reverse=word == "reverse"))
    return outputs


def _of(stacked: Constant, way: int) -> Constant:
    """The tensor of one direction."""
    key = f"{stacked.key}.{way}" if stacked.key else ""
    return stacked._replace(dims=stacked.dims[1:], key=key, elements=None)


def _others(call: Call, features: int, steps: int) -> None:
    """List what no layer counts: peepholes, and the way back to a state that is computed."""
    graph = call.graph
    peepholes = call.constant(7)
    if peepholes is not None:
        x, macs = call.value, 3 * features * steps
        operator = f"peepholes of {call.operator}"
        graph.uncounted(f"{call.name}.peepholes", operator, [x, peepholes], x.dims, macs=macs)
    for index, word in _GIVEN.items():
        state = call.computed(index)
        found = None if state is None else graph.layer(graph.seen(state))
        if state is not None and found is not None and found.kind != "source":
            operator = f"way back to the {word} of {call.operator}"
            graph.uncounted(f"{call.name}.state", operator, [state], state.dims, macs=0)


RECURRENT = {cell.upper(): _recurrent for cell in GATES}
