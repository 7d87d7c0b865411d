"""LSTM, GRU and RNN of a source's graph, as the layers that a file's recurrent layer stands for."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from hwmodel.errors import ShapeError
from hwmodel.graph.layers import Concat, Slice
from hwmodel.graph.layers.recurrent import GATES, Cell
from hwmodel.graph.recurrent import Recurrent
from hwmodel.importers.graph import Constant, Dims, Graph, Value, learned_of

__all__ = ["Steps", "Way", "last_step", "recurrent"]


class Way(NamedTuple):
    """Parameters of one direction: gates g H of I inputs, and of R outputs of the step before."""

    of_input: Constant  # (g H, I)
    of_state: Constant  # (g H, R)
    biases: tuple[Constant, ...] = ()  # none, one for both products, or one for each
    projection: Constant | None = None  # (R, H)


class Steps(NamedTuple):
    """What a recurrent layer gives: the output of every step, (directions x R, T, 1)."""

    output: Value  # its dimensions are the caller's to state
    ends: tuple[str, ...]  # layers whose output is that of a direction
    cells: tuple[str, ...]  # layers whose output is the cell's, which a projection takes


def recurrent(graph: Graph, name: str, x: Value, cell: Cell, ways: Sequence[Way]) -> Steps:
    """Add a recurrent layer over all places of `x`, which are its steps.

    Raises: ShapeError where weights do not fit each other or the input.
    """
    H, R = _features(cell, ways)
    I = x.known[-1] if x.known else 1  # noqa: E741
    if ways[0].of_input.dims[1] != I:
        raise ShapeError(
            f"its weights are for {ways[0].of_input.dims[1]} features, its input has {I}"
        )
    source = graph.seen(x, (I, prod(x.known) // I, 1))
    whole = Recurrent(
        name=Graph("").unused(name), kind=cell, features=H, directions=len(ways),
        projection=R if ways[0].projection else 0, biases=len(ways[0].biases),
    )  # fmt: skip
    parameters = iter([one for way in ways for one in _products(way)])
    placed = {source: source}
    made, cells = x, []
    for layer in whole.layers(source):
        fields = layer.model_dump(exclude_unset=True, exclude={"name", "kind", "inputs"})
        matrix = None
        if layer.kind != "concat":
            matrix, biases = next(parameters)
            owner = graph.owner(matrix)
            fields |= {"shares": owner, "weight_bits": matrix.bits}
            fields |= {} if owner else learned_of([matrix, *biases])
        inputs = [placed[one] for one in layer.inputs or ()]
        made = graph.put(type(layer), layer.name, inputs, None, **fields)
        if matrix is not None:
            graph.owned(matrix, made)
        placed[layer.name] = made.layer
        if layer.kind == "recurrence":
            cells.append(made.layer)
    ends = graph.inputs[made.layer] if len(ways) == 2 else (made.layer,)
    return Steps(made, ends, tuple(cells))


def _products(way: Way) -> list[tuple[Constant, tuple[Constant, ...]]]:
    """The matrices of a direction in the order of its layers, each with its bias."""
    found = [(way.of_input, way.biases[:1]), (way.of_state, way.biases[1:])]
    return found if way.projection is None else [*found, (way.projection, ())]


def _features(cell: Cell, ways: Sequence[Way]) -> tuple[int, int]:
    """H and R. Raises: ShapeError where the weights are not those of such a cell."""
    gates = GATES[cell]
    for way in ways:
        wanted, given = len(way.of_state.dims), [*way.of_input.dims, *way.of_state.dims]
        H = given[0] // gates if given else 0
        R = way.of_state.dims[-1] if wanted else 0
        fits = len(given) == 4 and wanted == 2 and given[0] == gates * H == given[2] > 0
        if not fits or (way.projection is None and R != H):
            raise ShapeError(
                f"its weights {list(way.of_input.dims)} and {list(way.of_state.dims)} are not "
                f"({gates} H, I) and ({gates} H, H)"
            )
    return H, R


def last_step(
    graph: Graph, name: str, layers: Sequence[str], dims: Dims | None, *, reverse: bool = False
) -> Value:
    """Add a view of what each direction gives last; of the way back that is the first place.

    Args:
        layers: one for each direction, as `Steps` has them.
        reverse: whether the only direction is the way back.
    """
    cuts = []
    for way, layer in enumerate(layers):
        T = graph.shapes[layer][1]
        start = 0 if reverse or way else T - 1
        last = {"start": start, "stop": start + 1, "axis": "rows"}
        cuts.append(graph.put(Slice, f"{name}.last", [layer], None, **last))
    if len(cuts) == 1:
        return Value(dims, cuts[0].layer, cuts[0].shape)
    return graph.put(Concat, f"{name}.last", [cut.layer for cut in cuts], dims)
