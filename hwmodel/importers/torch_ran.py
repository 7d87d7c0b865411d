"""An ATen operator that ran, as each function of the operators' table takes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from hwmodel.importers.graph import Constant, Dims, Graph, Operand, Value, as_value, learned_of
from hwmodel.importers.torch_masks import is_causal

__all__ = ["Ran", "Result"]

NOTHING: Mapping[Any, Any] = MappingProxyType({})


class Ran:
    """One operator that ran, with its arguments found."""

    def __init__(
        self,
        graph: Graph,
        name: str,
        operator: str,
        node: Any,
        found: dict[Any, Any],
        dims: list[Dims | None],
        several: bool,
        *,
        trained: bool = True,
        stored: Mapping[Any, Any] = NOTHING,
    ) -> None:
        """With what it takes, its results' dimensions, and whether gradients are recorded.

        Args:
            stored: tensors of the module that are no parameters, by their nodes.
        """
        self.trained, self.stored = trained, stored
        self.in_place = operator.endswith("_") and not operator.startswith("_")
        self.graph, self.name, self.node, self.several = graph, name, node, several
        self.operator = operator.rstrip("_") if self.in_place else operator
        self.found, self.dims = found, dims
        schema = getattr(node.target, "_schema", None)
        self.fields = [argument.name for argument in schema.arguments] if schema else []

    def is_causal(self, name: str) -> bool:
        """Whether an argument is a constant that is exactly a causal mask."""
        at = self.fields.index(name)
        given = self.node.args[at] if at < len(self.node.args) else self.node.kwargs.get(name)
        found = self.found.get(given) if hasattr(given, "users") else None
        whole = isinstance(found, Constant) and not found.learned
        return whole and is_causal(given, self.stored)

    def argument(self, name: str, default: Any = None) -> Any:
        """An argument by name; tensors are values or constants."""
        at = self.fields.index(name) if name in self.fields else len(self.node.args)
        given = self.node.args[at] if at < len(self.node.args) else self.node.kwargs.get(name)
        if given is None:
            return default
        if isinstance(given, (tuple, list)):
            return [self._found(one) for one in given]
        return self._found(given)

    def _found(self, given: Any) -> Any:
        """What stands for an argument; constants are not trained where no gradient is recorded."""
        found = self.found.get(given, given) if hasattr(given, "users") else given
        if isinstance(found, Constant) and not self.trained:
            return found._replace(frozen=True)
        return found

    def learned(self, *arguments: str) -> dict[str, Any]:
        """The field `learned` of a layer with these parameters, where it is not as usual."""
        given = [self.argument(name) for name in arguments]
        return learned_of([one for one in given if isinstance(one, Constant)])

    @property
    def value(self) -> Value:
        """The first argument; a constant becomes a tensor of its own."""
        first = self.argument(self.fields[0]) if self.fields else None
        if isinstance(first, Value):
            return first
        constant = first if isinstance(first, Constant) else Constant(())
        return as_value(self.graph, self.name, constant)

    def numbers(self, name: str, axes: int, default: int) -> tuple[int, ...]:
        """An argument with one number for each axis, or one for all."""
        given = self.argument(name)
        if given is None or given == []:
            return (default,) * axes
        listed = tuple(given) if isinstance(given, (tuple, list)) else (given,)
        return listed if len(listed) == axes else (listed[0],) * axes

    @property
    def is_complex(self) -> bool:
        """Whether its result is of complex numbers, each of two elements."""
        kind = getattr(self.node.meta.get("val"), "dtype", None)
        return bool(kind and kind.is_complex)

    @property
    def taken(self) -> set[int]:
        """Which of its results anything takes."""
        return {user.args[1] for user in self.node.users if user.users} if self.several else {0}

    def known(self) -> Dims:
        """Dimensions of the result. Raises: ShapeError where they depend on data."""
        return Value(self.dims[0], self.name, (1, 1, 1)).known


Result = Value | Constant | Sequence[Operand]
