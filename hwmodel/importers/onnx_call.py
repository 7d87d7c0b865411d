"""A node of an ONNX graph with its operands, as each function of the operators' table takes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hwmodel.errors import ShapeError
from hwmodel.importers.graph import Constant, Dims, Graph, Operand, Value, as_value
from hwmodel.importers.onnx_contents import Node

__all__ = ["Call", "Result", "dims_of", "window"]

Result = Value | Constant | Sequence[Operand]


class Call:
    """One node; operands and attributes are looked up when they are asked for, as few are."""

    def __init__(
        self,
        graph: Graph,
        name: str,
        node: Node,
        found: Callable[[str], Operand | None],
        dims: list[Dims | None],
        made: Mapping[str, Operand | None],
    ) -> None:
        """Take a node, a function that finds operands by name, and the names that are constants."""
        self.graph, self.name, self.dims = graph, name, dims
        self.operator, self.domain, self._names, _, self._message = node
        self._found, self._made = found, made
        self._attributes: dict[str, Any] | None = None

    @property
    def attributes(self) -> dict[str, Any]:
        """Attributes by name."""
        if self._attributes is None:
            self._attributes = {a.name: a for a in self._message.attribute}
        return self._attributes

    @property
    def x(self) -> list[Operand | None]:
        """All operands."""
        return [self._found(name) for name in self._names]

    @property
    def value(self) -> Value:
        """The first operand; a constant becomes a tensor of its own."""
        first = self._found(self._names[0]) if self._names else None
        if isinstance(first, Value):
            return first
        return as_value(self.graph, self.name, first or Constant(()))

    def operand(self, index: int) -> Operand | None:
        """An operand; None where it is left out."""
        return self._found(self._names[index]) if index < len(self._names) else None

    def has(self, index: int) -> bool:
        """Whether an operand is given."""
        return index < len(self._names) and bool(self._names[index])

    def computed(self, index: int) -> Value | None:
        """Return an operand unless it is a constant; constants stay unread."""
        found = self._made.get(self._names[index]) if index < len(self._names) else None
        return found if isinstance(found, Value) else None

    def needed(self, index: int) -> Operand:
        """Return an operand that must be there. Raises: ShapeError."""
        found = self.operand(index)
        if found is None:
            raise ShapeError(f"its operand {index + 1} is missing")
        return found

    def constant(self, index: int) -> Constant | None:
        """Return an operand if it is a constant."""
        found = self.operand(index)
        return found if isinstance(found, Constant) else None

    def ints(self, name: str, default: Sequence[int] = ()) -> Sequence[int]:
        """An attribute that is a list of whole numbers."""
        found = self.attributes.get(name)
        return default if found is None else found.ints[:] or default

    def number(self, name: str, default: int) -> int:
        """An attribute that is a whole number."""
        found = self.attributes.get(name)
        return default if found is None else found.i

    def text(self, name: str, default: str) -> str:
        """An attribute that is a word."""
        found = self.attributes.get(name)
        return default if found is None else found.s.decode("utf-8", "replace")

    def axes(self) -> tuple[int, ...]:
        """Axes of a reduction, an attribute or the second operand; none given: all."""
        rank = len(self.value.known)
        second = self.constant(1)
        stated = self.ints("axes") or (second.whole if second and second.whole else ())
        return tuple(sorted(axis % rank for axis in stated)) if rank else ()


def dims_of(call: Call) -> Dims:
    """Dimensions of the first output. Raises: ShapeError where they are not known."""
    dims = call.dims[0]
    return Value(None, call.name, (1, 1, 1)).known if dims is None else dims


def window(call: Call, kernel: Sequence[int]) -> Sequence[int]:
    """Return the padding before every axis, then after, from `pads` or `auto_pad`.

    SAME: (outs - 1) stride + span - size in all, the odd one at the end (UPPER) or before (LOWER).
    """
    axes = len(kernel)
    same = call.text("auto_pad", "NOTSET")
    if not same.startswith("SAME"):
        return call.ints("pads", (0,) * 2 * axes) if same == "NOTSET" else (0,) * 2 * axes
    strides, dilations = call.ints("strides", (1,) * axes), call.ints("dilations", (1,) * axes)
    sizes, outs = call.value.known[2:], dims_of(call)[2:]
    befores, afters = [], []
    for size, out, taps, stride, dilation in zip(
        sizes, outs, kernel, strides, dilations, strict=True
    ):
        total = max((out - 1) * stride + (taps - 1) * dilation + 1 - size, 0)
        less = total // 2
        befores.append(less if same == "SAME_UPPER" else total - less)
        afters.append(total - befores[-1])
    return befores + afters
