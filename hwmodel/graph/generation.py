"""A language model at one point of a generation: so many new tokens, so many in the cache."""

from __future__ import annotations

from hwmodel.errors import HwmodelError, ShapeError
from hwmodel.graph.layers import (
    INPUT,
    AttentionContext,
    AttentionScores,
    Conv,
    Embedding,
    Layer,
    Linear,
    Slice,
)
from hwmodel.graph.layers.recurrent import Recurrence
from hwmodel.graph.network import Network

__all__ = ["POSITIONS", "generating", "see_generates", "state_columns"]

POSITIONS = "positions"  # role of a table whose rows are positions, so that it ends with them
_STATES = frozenset({"recurrence", "scan"})  # layers that keep a state in the place of a cache
_SLIDING = frozenset({"conv", "conv-transpose", "max-pool", "average-pool"})


def see_generates(network: Network, longest: int) -> None:
    """See that a network is a language model that can be generated from.

    Args:
        longest: tokens at the end, the first ones among them.

    Raises: HwmodelError.
    """
    name, (features, _, columns) = network.name, network.input
    if features != 1 or columns != 1:
        raise HwmodelError(f"{name}: its input {network.input} is no sequence of tokens, (1, L, 1)")
    _see_attention(network)
    for node in network.nodes():
        layer = node.layer
        if isinstance(layer, Recurrence) and layer.reverse:
            raise HwmodelError(
                f"{name}: layer {layer.name} goes from the last token to the first, so that "
                "nothing can be generated token by token"
            )
        slides = layer.kind in _SLIDING and node.input_shapes[0][1] > 1
        if slides and not state_columns(layer):
            raise HwmodelError(
                f"{name}: layer {layer.name} slides along the tokens, which a generation token by "
                "token does not count"
            )
        if isinstance(layer, Embedding) and layer.role == POSITIONS and longest > layer.vocabulary:
            raise HwmodelError(
                f"{name}: {longest:,} tokens; layer {layer.name} has {layer.vocabulary:,} positions"
            )


def _see_attention(network: Network) -> None:
    """See that all attention keeps keys and values for later tokens."""
    found = [x for x in network.layers if isinstance(x, (AttentionScores, AttentionContext))]
    if not found and any(layer.kind in _STATES for layer in network.layers):
        return
    if not any(layer.cache for layer in found):
        raise HwmodelError(
            f"{network.name}: no attention in it keeps keys and values, so that nothing can be "
            "generated token by token; where it may, state causal: true and cache: true in its "
            "file, of attention-scores and attention-context alike"
        )
    for layer in found:
        if not (layer.cache and layer.causal):
            lacks = "cache: true" if layer.causal else "causal: true"
            raise HwmodelError(f"{network.name}: layer {layer.name} lacks {lacks}")
        if layer.past:
            raise HwmodelError(f"{network.name}: layer {layer.name} states a past already")


def state_columns(layer: Layer) -> int:
    """Columns before a token that a convolution along the tokens reads; 0: it is none of them.

    It sees what is before a place alone, one place after another, and gives as many.
    """
    if not isinstance(layer, Conv) or layer.kernel[1] != 1:
        return 0
    before = layer.dilation[0] * (layer.kernel[0] - 1)
    alone = layer.stride == (1, 1) and tuple(layer.padding) == (before, 0, 0, 0)
    return before if alone else 0


def generating(network: Network, new: int, past: int) -> Network:
    """Return the network on `new` tokens behind `past` ones, the head at the last of them alone.

    Raises: HwmodelError where a layer hangs on the length that the file states.
    """
    layers: list[Layer] = []
    for layer in network.layers:
        if isinstance(layer, (AttentionScores, AttentionContext)):
            most = past if layer.window is None else min(past, layer.window - 1)
            layer = layer.model_copy(update={"past": most})
        layers.append(layer)
    last = layers[-1]
    if new > 1 and isinstance(last, Linear) and last.over == "channels":
        given = last.inputs or (layers[-2].name if len(layers) > 1 else INPUT,)
        row = {"name": _free("last-token", network), "kind": "slice", "inputs": given}
        cut = Slice.model_validate(row | {"axis": "rows", "start": new - 1, "stop": new})
        layers[-1:] = [cut, last.model_copy(update={"inputs": (cut.name,)})]
    found = network.model_copy(update={"input": (1, new, 1), "layers": tuple(layers)})
    whole = {node.layer.name: node for node in network.nodes()}
    try:
        nodes = found.nodes()
    except ShapeError as error:
        raise HwmodelError(f"{error}; the network states a length of {network.input[1]}") from None
    for node in nodes:
        one = whole.get(node.layer.name)
        if one and (one.weights, one.other_parameters) != (node.weights, node.other_parameters):
            raise HwmodelError(
                f"{network.name}: layer {node.layer.name} has other weights for {new} tokens than "
                f"for {network.input[1]}"
            )
    return found


def _free(name: str, network: Network) -> str:
    """A name that no layer has."""
    taken = {layer.name for layer in network.layers}
    while name in taken:
        name += "_"
    return name
