"""Freezes layers of a network by patterns of their names: nothing of them is trained."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from hwmodel.errors import HwmodelError, nearest
from hwmodel.graph.network import MAY_BE_CONSTANT, Network
from hwmodel.graph.node import Node

__all__ = ["frozen"]


def frozen(network: Network, freeze: Sequence[str] = (), train_only: Sequence[str] = ()) -> Network:
    """Return the network with layers frozen, called NAME-frozen; or as it is, without patterns.

    What a file already freezes stays so. A layer that uses the weights of another goes with it.

    Args:
        freeze: patterns of names, with *, ? and [...]: these layers are frozen.
        train_only: all layers are frozen but these.

    Raises: HwmodelError for a pattern that no layer with parameters matches, and for one that
        parts a layer from the one whose weights it uses.
    """
    if not (freeze or train_only):
        return network
    own = {node.layer.name: node for node in network.nodes() if _may_learn(node)}
    for word, patterns in (("freeze", freeze), ("train-only", train_only)):
        for pattern in patterns:
            if not _matching(own, (pattern,)):
                raise HwmodelError(
                    f"{word} {pattern!r}: matches no layer of {network.name} with parameters; "
                    f"{nearest(pattern, own)}"
                )
    still = _matching(own, freeze)
    if train_only:
        still |= own.keys() - _matching(own, train_only)
    for name, node in own.items():
        owner = node.layer.shares
        if owner and (name in still) != (owner in still):
            one, other = (name, owner) if name in still else (owner, name)
            raise HwmodelError(
                f"{one} would be frozen and {other} not: layer {name} uses the weights of {owner}"
            )
    layers = (
        layer.model_copy(update={"learned": _stopped(own[layer.name])})
        if layer.name in still and not layer.shares
        else layer
        for layer in network.layers
    )
    found = network.model_copy(update={"name": f"{network.name}-frozen", "layers": tuple(layers)})
    found.nodes()  # refuses what cannot be frozen
    return found


def _may_learn(node: Node) -> bool:
    """Whether a layer has anything to be trained, or is a norm of which statistics can rest."""
    layer, shapes = node.layer, node.input_shapes
    own = layer.weights(shapes) or layer.other_parameters(shapes)
    return bool(own) or layer.kind.endswith("-norm")


def _stopped(node: Node) -> bool | str:
    """The word for frozen: a constant of the architecture would have no parameters at all."""
    kind = node.layer.kind
    return "frozen" if kind in MAY_BE_CONSTANT and not kind.endswith("-norm") else False


def _matching(names: dict[str, Node], patterns: Sequence[str]) -> set[str]:
    return {name for name in names if any(fnmatchcase(name, one) for one in patterns)}
