"""Makes layers of a network checkpoints, by patterns of their names."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from hwmodel.errors import HwmodelError, nearest
from hwmodel.graph.network import Network

__all__ = ["checkpointed"]


def checkpointed(network: Network, patterns: Sequence[str] = ()) -> Network:
    """Return the network with checkpoints, called NAME-checkpointed; or as it is, without patterns.

    What a file already states stays so.

    Args:
        patterns: of names, with *, ? and [...]: these layers are checkpoints.

    Raises: HwmodelError for a pattern that no layer matches.
    """
    if not patterns:
        return network
    names = [layer.name for layer in network.layers]
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise HwmodelError(
                f"checkpoint {pattern!r}: matches no layer of {network.name}; "
                f"{nearest(pattern, names)}"
            )
    layers = tuple(
        layer.model_copy(update={"checkpoint": True})
        if any(fnmatchcase(layer.name, pattern) for pattern in patterns)
        else layer
        for layer in network.layers
    )
    name = {"name": f"{network.name}-checkpointed", "label": None}  # a label is of the whole
    return network.model_copy(update={**name, "layers": layers})
