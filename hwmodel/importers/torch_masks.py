"""Masks that a module makes of constants: whether one is exactly a causal mask.

Nothing is guessed from the operators' names: the mask is computed, and compared element by element.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["is_causal"]

MOST = 2**24  # elements of a tensor that is computed
LONGEST = 200  # operators
HIDDEN = -1e4  # what is added to a score that nobody is to see, at most


class _UnknownError(Exception):
    """A number that depends on what the module is given, or is too much to compute."""


def is_causal(node: Any, stored: Mapping[Any, Any]) -> bool:
    """Say whether a mask shows each of L queries the keys up to its own place, and no other.

    Args:
        node: of torch.fx, which gives the mask: (…, L, L), true for what is seen or 0 to be added.
        stored: tensors of the module's own, by their nodes.
    """
    try:
        mask = _computed(node, stored, {})
    except (_UnknownError, RuntimeError, TypeError, ValueError):
        return False
    if mask.dim() < 2 or mask.shape[-1] != mask.shape[-2] or mask.shape[-1] < 2:
        return False
    seen = mask if mask.dtype.is_complex or not mask.dtype.is_floating_point else mask == 0
    if mask.dtype.is_floating_point and not bool((seen | (mask <= HIDDEN)).all()):
        return False
    lower = seen.new_ones(mask.shape[-2:]).bool().tril()
    return "bool" in str(seen.dtype) and bool((seen == lower).all())


def _computed(node: Any, stored: Mapping[Any, Any], known: dict[Any, Any]) -> Any:
    """Compute the tensor of a node. Raises: _UnknownError."""
    from torch.fx.node import map_arg

    if node not in known:
        if _in_place(node) or _written(node) or len(known) > LONGEST:
            raise _UnknownError
        if node in stored:
            known[node] = stored[node]
        elif node.op == "call_function" and getattr(node.target, "namespace", "") == "aten":
            value = node.meta.get("val")
            if hasattr(value, "numel") and int(value.numel()) > MOST:
                raise _UnknownError
            args, kwargs = (
                map_arg(given, lambda one: _computed(one, stored, known))
                for given in (node.args, node.kwargs)
            )
            known[node] = node.target(*args, **kwargs)
        else:
            raise _UnknownError
    return known[node]


def _written(node: Any) -> bool:
    """Say whether an operator writes to the tensor that a node gives, or to a view of it."""
    return any(_in_place(one) or (_is_view(one) and _written(one)) for one in node.users)


def _is_view(node: Any) -> bool:
    schema = getattr(node.target, "_schema", None)
    return bool(schema and any(one.alias_info for one in schema.returns))


def _in_place(node: Any) -> bool:
    """Say whether an operator writes elements of what it is given."""
    schema = getattr(node.target, "_schema", None)
    return bool(schema and schema.is_mutable and schema.name != "aten::detach_")
