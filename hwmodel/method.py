"""A method: how many bits each tensor has in each pass, and which arithmetic each pass needs.

Methods are data. A rule says for which layers it holds; the first rule that matches a layer
applies, and a layer that none matches is an error. Widths that are a matter of accounting (the
full-precision word, the Boolean signal) are named, not numbered.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from hwmodel.accounting import Accounting
from hwmodel.errors import NameUnknown, SpecError
from hwmodel.files import Name, NamedSpec, SpecModel, Text, bundled, load
from hwmodel.layers import PASSES, Pass, Tensor
from hwmodel.network import Node

__all__ = ["Arithmetic", "ExtraWork", "Method", "Rule", "Treatment"]

Arithmetic = Literal["mac", "add", "logic", "accumulate"]
NAMED_WIDTHS = ("full_precision", "boolean_signal", "boolean_vote", "preactivation")


def _width(value: Any) -> int | str:
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 64:
        return value
    if value in NAMED_WIDTHS:
        return str(value)
    raise ValueError(f"{value!r} is no width; give 1 to 64 bit or one of {', '.join(NAMED_WIDTHS)}")


_WIDTH_SCHEMA = {"anyOf": [{"type": "integer", "minimum": 1}, {"enum": list(NAMED_WIDTHS)}]}
Width = Annotated[int | str, BeforeValidator(_width), WithJsonSchema(_WIDTH_SCHEMA)]


class Where(SpecModel):
    """Layers a rule holds for; a property left out does not matter, a list means any of it."""

    kind: tuple[Name, ...] | None = Field(default=None, min_length=1)
    position: tuple[Literal["first", "middle", "last"], ...] | None = Field(
        default=None, min_length=1
    )

    def matches(self, node: Node) -> bool:
        """Whether the layer at `node` is meant."""
        kind = self.kind is None or node.layer.kind in self.kind
        return kind and (self.position is None or node.position in self.position)


class Rule(SpecModel):
    """Widths and arithmetic of some layers: another method's, and what differs from it."""

    where: Where = Where()
    precision: Name | None = Field(default=None, description="a method whose rule is taken over")
    bits: dict[Tensor, Width] = Field(default={})
    arithmetic: dict[Pass, Arithmetic] = Field(default={})
    source: Text

    @model_validator(mode="after")
    def _complete(self) -> Rule:
        tensors = {tensor for moved in PASSES.values() for tensor in moved}
        missing = sorted(tensors - set(self.bits)) + sorted(set(PASSES) - set(self.arithmetic))
        if self.precision is None and missing:
            raise ValueError(f"says nothing of {', '.join(missing)}, and names no precision")
        return self


class ExtraWork(SpecModel):
    """Full-precision work on every pre-activation that the method needs beyond its products."""

    what: Text
    where: Where = Where()
    source: Text


class Treatment(NamedTuple):
    """What a method does with one layer."""

    bits: dict[Tensor, int]  # [bit]
    arithmetic: dict[Pass, Arithmetic]
    extra: tuple[str, ...]  # names of the extra work on its pre-activations


class Method(NamedSpec):
    """How a network is trained or run: the rules for its layers."""

    KIND: ClassVar[str] = "method"
    FOLDER: ClassVar[str] = "methods"

    colour: str | None = Field(
        default=None, pattern=r"^#[0-9a-f]{6}$", description="in every figure; the source's"
    )
    rules: tuple[Rule, ...] = Field(min_length=1)
    extra_work: tuple[ExtraWork, ...] = ()

    def treatment(self, node: Node, accounting: Accounting) -> Treatment:
        """Widths [bit] and arithmetic of a layer with weights.

        Raises: SpecError where no rule matches, NameUnknown where `precision` is no method.
        """
        bits, arithmetic = self._resolve(node)
        widths = {
            tensor: width if isinstance(width, int) else getattr(accounting, f"{width}_bits")
            for tensor, width in bits.items()
        }
        extra = tuple(work.what for work in self.extra_work if work.where.matches(node))
        return Treatment(widths, arithmetic, extra)

    def check_references(self) -> None:
        """See that every method named by a rule exists. Raises: NameUnknown."""
        for rule in self.rules:
            if rule.precision is not None:
                _referred(rule.precision)

    def _resolve(self, node: Node) -> tuple[dict[Tensor, Width], dict[Pass, Arithmetic]]:
        # Only bundled methods can be referred to, and a test sees that those end.
        rule = next((rule for rule in self.rules if rule.where.matches(node)), None)
        if rule is None:
            raise SpecError(
                f"method {self.name}: no rule for layer {node.layer.name} "
                f"(kind {node.layer.kind}, position {node.position})"
            )
        if rule.precision is None:
            return rule.bits, rule.arithmetic
        bits, arithmetic = _referred(rule.precision)._resolve(node)
        return {**bits, **rule.bits}, {**arithmetic, **rule.arithmetic}


def _referred(name: str) -> Method:
    """A bundled method; a name that looks like a path is none. Raises: NameUnknown."""
    known = bundled(Method)
    if name not in known:
        raise NameUnknown(Method.KIND, name, known)
    return load(Method, name)
