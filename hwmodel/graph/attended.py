"""Which scores a tensor is of: what comes of them element by element, before the context."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from hwmodel.errors import ShapeError
from hwmodel.graph.layers import AttentionContext, AttentionScores, Layer

__all__ = ["Attended", "attended", "past", "scores_by_layer", "unmasked_pairs"]

_ELEMENTWISE = frozenset({"activation", "add", "multiply", "scale"})
_WORDS = {"shared": "heads of queries that share one of keys:"}
_ALIKE = ("shared", "causal", "window", "cache", "past")


def past(layer: Layer) -> int:
    """Keys that lie in a cache beside those that a layer is given; 0 for all but attention."""
    return layer.past if isinstance(layer, (AttentionContext, AttentionScores)) else 0


def scores_by_layer(placed: Iterable[Any]) -> dict[str, AttentionScores]:
    """Return the scores of which each softmax or sum is, by the layer's name.

    Args:
        placed: layers with `layer` and `inputs`, each after its inputs.

    Raises: ShapeError for a context whose heads, mask or cache are not those of its scores.
    """
    found: dict[str, AttentionScores] = {}
    for one in placed:
        layer = one.layer
        known = next((found[name] for name in one.inputs if name in found), None)
        if isinstance(layer, AttentionScores):
            found[layer.name] = layer
        elif known and isinstance(layer, AttentionContext):
            _see_alike(layer, known)
        elif known and layer.kind in _ELEMENTWISE:
            found[layer.name] = known
    return found


def unmasked_pairs(nodes: Iterable[Any]) -> dict[str, int]:
    """Return the pairs of a head that a mask leaves, of each operator on masked scores."""
    nodes = tuple(nodes)
    shapes = {node.layer.name: node.input_shapes for node in nodes}
    return {
        name: scores.pairs(shapes[scores.name])
        for name, scores in scores_by_layer(nodes).items()
        if scores.causal and name != scores.name
    }


class Attended(NamedTuple):
    """Scores, what is done to them, and the context, which can run in one kernel."""

    scores: Any  # places in a network
    between: tuple[Any, ...]  # from the scores on
    context: Any

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all layers."""
        return tuple(one.layer.name for one in (self.scores, *self.between, self.context))


def attended(nodes: Sequence[Any], trains: bool) -> list[Attended]:
    """List the attention of which nobody else sees scores, or what comes of them.

    Not where something learns that is added to scores, or spikes are multiplied.
    """
    by_name = {node.layer.name: node for node in nodes}
    takers = Counter(name for node in nodes for name in node.inputs)
    scores = scores_by_layer(nodes)
    found = []
    for node in nodes:
        if not isinstance(node.layer, AttentionContext) or any(node.input_rates):
            continue
        between: list[Any] = []
        name = node.inputs[0]
        while name in scores and name in by_name and takers[name] == 1:
            one = by_name[name]
            if isinstance(one.layer, AttentionScores):
                if not any(one.input_rates):
                    found.append(Attended(one, tuple(reversed(between)), node))
                break
            main = next(i for i, x in enumerate(one.inputs) if x in scores)
            if trains and any(w for i, w in enumerate(one.signal_to) if i != main):
                break
            between.append(one)
            name = one.inputs[main]
    return found


def _see_alike(context: AttentionContext, scores: AttentionScores) -> None:
    for field in _ALIKE:
        one, other = getattr(context, field), getattr(scores, field)
        if one != other:
            raise ShapeError(
                f"layer {context.name}: {_WORDS.get(field, field)} {one}, "
                f"and {other} of its scores {scores.name}"
            )
