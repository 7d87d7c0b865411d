"""Tensors that an ONNX file stores: dimensions, widths, and the elements of short ones."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

from hwmodel.errors import ShapeError
from hwmodel.importers.graph import Constant, Elements
from hwmodel.importers.wire import LONG
from hwmodel.work.tensor import Stated

__all__ = ["FLOATS", "INTEGERS", "WIDTHS", "of_node", "stored"]

FLOATS = (1, 10, 11, 16)  # FLOAT, FLOAT16, DOUBLE, BFLOAT16
INTEGERS = (6, 7)  # INT32, INT64
# Element types -> their width [bit], INT8, UINT8, INT16 …; or their format, FLOAT8E4M3FN …
WIDTHS: dict[int, Stated] = {2: 8, 3: 8, 4: 16, 5: 16, 6: 32, 21: 4, 22: 4, 24: 8, 25: 2, 26: 2}
WIDTHS |= {17: "e4m3", 18: "e4m3", 19: "e5m2", 20: "e5m2", 23: "e2m1", 27: "e2m3", 28: "e3m2"}
FLOAT_BITS = {10: 16, 11: 64, 16: 16}  # of other floating types than FLOAT
FEW = 64  # elements that are read


def stored(tensor: Any, where: str, name: str) -> Constant:
    """Read a tensor of the file: its dimensions and width, and its elements if they are few.

    Args:
        where: what a message about it begins with.
    Raises: ShapeError.
    """
    dims = tuple(tensor.dims)
    if any(length < 0 for length in dims):
        raise ShapeError(f"{where} is {list(dims)}: none may be below 0")
    elements = partial(_elements, tensor) if prod(dims) <= FEW else None
    width = WIDTHS.get(tensor.data_type)
    learned = tensor.data_type in FLOATS
    if learned and not dims and elements is not None:  # a number of the formula, if it is there
        learned = elements() is None
    wide = FLOAT_BITS.get(tensor.data_type, 32)
    return Constant(dims, name, learned, elements, width, float_bits=wide)


def _elements(tensor: Any) -> Elements:
    from onnx import numpy_helper

    if tensor.ByteSize() > 4 * LONG:
        return None
    try:
        return tuple(map(float, numpy_helper.to_array(tensor).reshape(-1)))
    except (ValueError, TypeError, KeyError):
        return None  # no elements, as in a file without its weights


def of_node(attributes: Sequence[Any], where: str, name: str) -> Constant:
    """Read the tensor of a node Constant."""
    for attribute in attributes:
        if attribute.HasField("t"):
            return stored(attribute.t, f"{where}: tensor {name}", name)
        if attribute.name in ("value_float", "value_int"):
            return Constant((), name, elements=(attribute.f or attribute.i,))
        if attribute.name in ("value_floats", "value_ints"):
            values = tuple(attribute.floats) or tuple(attribute.ints)
            return Constant((len(values),), name, elements=values)
    return Constant((), name)
