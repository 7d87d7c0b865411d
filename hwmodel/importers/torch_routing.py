"""How many rows a router sends to each of several experts: data decide, and even shares are taken.

A module that finds the tokens of an expert by `where` or `nonzero` gives lengths that no export
knows. Where the mask comes of the k largest of E scores, an expert has k T / E of T tokens,
rounded.
"""

from __future__ import annotations

from math import prod
from typing import Any

from hwmodel.importers.torch_batch import operator_name, shape_of

__all__ = ["expected_lengths"]

_CHOSEN = frozenset({"nonzero", "nonzero_numpy", "where"})
_SEEN = frozenset(
    {
        "eq", "one_hot", "permute", "transpose", "select", "squeeze", "unsqueeze", "view",
        "reshape", "getitem", "unbind", "slice", "to", "_to_copy", "gt", "ne", "t", "flatten",
    }
)  # fmt: skip
LONGEST = 12  # operators between the choice and the mask


def expected_lengths(node: Any, images: int) -> dict[str, int]:
    """Return the unknown lengths of what an operator gives, by symbol, for all images together.

    Empty where it chooses nothing, or not by a router.
    """
    if operator_name(node) not in _CHOSEN or len(node.all_input_nodes) != 1:
        return {}
    router = _router(node.all_input_nodes[0])
    if router is None:
        return {}
    experts = shape_of(router.args[0])[-1]
    rows = prod(map(int, router.meta["val"][1].shape))
    share = max(1, round(rows / images / experts)) * images
    given = node.meta.get("val")
    tensors = given if isinstance(given, (tuple, list)) else [given]
    lengths = {str(n) for tensor in tensors for n in tensor.shape if not isinstance(n, int)}
    return dict.fromkeys(lengths, share)


def _router(node: Any) -> Any:
    """The node that chose the k largest scores, of which a mask is made; None if there is none."""
    for _ in range(LONGEST):
        operator = operator_name(node) if node.op == "call_function" else ""
        if operator == "topk":
            return node
        if operator not in _SEEN or not node.all_input_nodes:
            return None
        node = node.all_input_nodes[0]
    return None
