"""A method: how wide each tensor is, and which arithmetic each pass needs.

Methods are data. Rules for `layers` say what the products of a layer need; rules for `tensors`
say how wide the output of a layer is, and the signal that comes back to it. The first rule that
matches applies, and a layer that none matches is an error. Widths that are a matter of
accounting (the full-precision word, the Boolean signal) are named, not numbered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import (
    BeforeValidator,
    Field,
    ModelWrapValidatorHandler,
    WithJsonSchema,
    model_validator,
)

from hwmodel.errors import NameUnknown, SpecError, near
from hwmodel.specs.files import Flag, Label, Name, NamedSpec, SpecModel, Text, Whole, bundled, load
from hwmodel.specs.formats import Format, formats
from hwmodel.specs.limits import Limits
from hwmodel.specs.mistakes import Contradiction, refuse
from hwmodel.work.optimizers import Optimizer
from hwmodel.work.problem import PASSES, ProductPass

__all__ = ["AS_INPUT", "Arithmetic", "ExtraWork", "LayerRule", "Method", "Teacher", "TensorRule"]
__all__ += ["Update", "Where", "own_formats", "referred"]

Arithmetic = Literal["mac", "int-mac", "add", "int-add", "shift-add", "logic", "accumulate"]
Update = Literal["optimizer", "boolean"]
Marker = Literal["o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h", "d", "*"]
Hatch = Literal["/", "\\", ".", "x", "-", "|", "+", "o"]
NAMED_WIDTHS = (
    "full_precision", "preactivation", "boolean_signal", "boolean_vote", "boolean_sum", "border",
    "stated",
)  # fmt: skip


# Numbers of states of optimizers whose widths a rule may state.
_STATES = {"sgd": 0, "momentum": 1, "adam": 2, "adamw": 2, "lion": 1, "galore": 3}
AS_INPUT = "input"  # a tensor as wide as the widest that its layer is given


_own: ContextVar[frozenset[str]] = ContextVar("formats of the method that is read")


@contextmanager
def own_formats(names: Any) -> Iterator[None]:
    """Let widths of what is checked meanwhile be these formats, too: a method's own."""
    token = _own.set(frozenset(map(str, names)) if isinstance(names, Mapping) else frozenset())
    try:
        yield
    finally:
        _own.reset(token)


def _width(value: Any) -> int | float | str:
    return _width_among(value, NAMED_WIDTHS)


def _tensor_width(value: Any) -> int | float | str:
    return _width_among(value, (*NAMED_WIDTHS, AS_INPUT))


def _width_among(value: Any, names: tuple[str, ...]) -> int | float | str:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 1 <= value <= 64:
        return int(value) if value == int(value) else float(value)
    if isinstance(value, str) and (value in names or value in formats() or value in _own.get(())):
        return str(value)
    close = near(str(value), (*_own.get(()), *formats())) if isinstance(value, str) else None
    hint = f"; did you mean {close!r}?" if close else ""
    raise ValueError(
        f"{value!r} is no width; give 1 to 64 bit or one of {', '.join(names)}, or a format{hint}"
    )


def _width_schema(*names: str) -> WithJsonSchema:
    number = {"type": "integer", "minimum": 1}
    decimal = {"minimum": 1, "maximum": 64, "not": {"type": ["string", "integer"]}}
    of_formats = {"type": "string", "description": "a format: a bundled one, or of this method"}
    return WithJsonSchema({"anyOf": [number, decimal, {"enum": list(names)}, of_formats]})


Width = Annotated[int | float | str, BeforeValidator(_width), _width_schema(*NAMED_WIDTHS)]
TensorWidth = Annotated[
    int | float | str, BeforeValidator(_tensor_width), _width_schema(*NAMED_WIDTHS, AS_INPUT)
]
Words = Annotated[tuple[Name, ...], Field(min_length=1)]


class Where(SpecModel):
    """The layers for which a rule holds; a property left out does not matter, a list means any."""

    kind: Words | None = None
    position: tuple[Literal["first", "middle", "last"], ...] | None = Field(
        default=None, min_length=1
    )
    role: Words | None = None
    function: Words | None = None
    feeds: Words | None = Field(default=None, description="kinds of layers that take the output")
    feeds_role: Words | None = Field(
        default=None, description="roles of which a layer that takes the output has one"
    )
    learned: Flag | None = Field(
        default=None, description="whether the weights are trained; false: they are frozen"
    )
    stated: Flag | Literal["floating"] | None = Field(
        default=None,
        description="whether the network states the width of its weights and input, as integers; "
        "floating: whether all are in floating-point formats",
    )


class LayerRule(SpecModel):
    """Widths, arithmetic and update of some layers' products; or another rule and what differs."""

    where: Where = Where()
    precision: Name | None = Field(default=None, description="a method whose rule is taken over")
    weights: Width | None = Field(default=None, description="F")
    weight_signal: Width | None = Field(default=None, description="dF")
    inputs: Width | None = Field(
        default=None, description="of a wider tensor the products read a copy as narrow as this"
    )
    weights_backward: Width | None = Field(
        default=None, description="F as backward_input reads it; none: as forward"
    )
    inputs_backward: Width | None = Field(
        default=None, description="inputs as backward_weight reads them; none: as forward"
    )
    signal: Width | None = Field(
        default=None, description="of a wider dO the products read a copy as narrow as this"
    )
    latent: Annotated[Whole, Field(ge=1, le=64)] | None = Field(
        default=None, description="weights that are stepped [bit]; none: a full-precision word"
    )
    optimizer: Optimizer | None = Field(
        default=None, description="of these weights; none: the method's, else the accounting's"
    )
    states: tuple[Annotated[Whole, Field(ge=1, le=64)], ...] | None = Field(
        default=None, description="widths of what the optimizer remembers [bit]; none: its own"
    )
    arithmetic: dict[ProductPass, Arithmetic] = Field(default={})
    update: Update | None = Field(default=None, description="how the weights are updated")
    source: Text

    @model_validator(mode="after")
    def _complete(self) -> LayerRule:
        stated = {name: getattr(self, name) for name in ("weights", "weight_signal", "update")}
        missing = [name for name, value in stated.items() if value is None]
        missing += [name for name in PASSES if name not in self.arithmetic]
        if self.precision is None and missing:
            raise ValueError(f"says nothing of {', '.join(missing)}, and names no precision")
        return self


class TensorRule(SpecModel):
    """Widths of the output of some layers and of the signal that comes back to it."""

    where: Where = Where()
    bits: TensorWidth
    signal: Width
    format: Literal["integer", "floating"] = Field(
        default="integer",
        description="of words narrower than full precision, in which operators add",
    )
    source: Text


class SumRule(SpecModel):
    """The width of the sum that is stored beside a layer's output for the way back."""

    where: Where = Where()
    bits: Width | Literal["none"] = Field(description="none: nothing is stored")
    source: Text


AnyRule = TypeVar("AnyRule", LayerRule, TensorRule)


Count = Annotated[Whole, Field(ge=0, le=1000)]


class Passes(SpecModel):
    """Work on a tensor: times each element is read and written, operations for each element."""

    reads: Count = 0
    writes: Count = 0
    adds: Count = 0
    macs: Count = 0
    signal_reads: Count = 0
    signal_writes: Count = 0
    signal_adds: Count = 0
    signal_macs: Count = 0


class ExtraWork(SpecModel):
    """Full-precision work on the output of some layers that the graph does not show."""

    what: Annotated[Text, Field(pattern=r"^[A-Za-z0-9]")]  # a cell of a table, so no formula
    where: Where = Where()
    words: Count = Field(default=1, description="in units of accounting.extras.preactivation_words")
    streamed: Passes | None = Field(
        default=None, description="what it is when operators are streamed; none: the graph shows it"
    )
    source: Text


class Teacher(SpecModel):
    """A trained network that is run forward beside the one that learns (distillation)."""

    network: Name
    method: Name
    source: Text


class Method(NamedSpec):
    """A method: widths, arithmetic and extra work with which a network is trained or run."""

    KIND: ClassVar[str] = "method"
    FOLDER: ClassVar[str] = "methods"
    ELSEWHERE: ClassVar[Mapping[str, str]] = {
        "lora": "its adapters are layers of the network's own, and the layers that they adapt are "
        "frozen by --freeze; any method prices them (docs/networks.md)"
    }

    label: Label | None = None
    colour: str | None = Field(
        default=None, pattern=r"^#[0-9a-fA-F]{6}$", description="in every figure; the source's"
    )
    marker: Marker | None = Field(default=None, description="in figures of points, as matplotlib's")
    hatch: Hatch | None = Field(default=None, description="of bars, as matplotlib's; none: plain")
    formats: dict[Name, Format] = Field(
        default={}, description="of its own, beside the bundled ones; named where widths are"
    )
    optimizer: Optimizer | None = Field(
        default=None, description="where an accounting counts updates; none: the accounting's"
    )
    rank: Annotated[Whole, Field(ge=1, le=2**31)] = Field(
        default=128, description="of galore's projection"
    )
    spikes: Literal["add", "mac"] = Field(
        default="add", description="arithmetic of products that are fed by spikes of 1 bit"
    )
    trains: Flag = Field(default=True, description="false: a method for inference alone")
    layers: tuple[LayerRule, ...] = Field(min_length=1)
    tensors: tuple[TensorRule, ...] = Field(min_length=1)
    omits: tuple[Name, ...] = Field(
        default=(), description="kinds of layers without a role that it does without"
    )
    kept: tuple[SumRule, ...] = Field(
        default=(), description="sums stored beside the tensor for the way back"
    )
    extra_work: tuple[ExtraWork, ...] = ()
    widths: Limits | None = Field(
        default=None, description="of Boolean layers: before those of a trace and the accounting"
    )
    teacher: Teacher | None = None
    untrained: Text | None = Field(
        default=None, description="what its training does beyond its rules: the trainer does not"
    )

    @model_validator(mode="wrap")
    @classmethod
    def _with_formats(cls, values: Any, handler: ModelWrapValidatorHandler[Method]) -> Method:
        """Widths may be formats of the method's own."""
        with own_formats(values.get("formats") if isinstance(values, dict) else None):
            return handler(values)

    @model_validator(mode="after")
    def _coherent(self) -> Method:
        refuse(self._contradictions())
        return self

    def _contradictions(self) -> Iterator[Contradiction]:
        for place, rule in enumerate(self.layers):
            own = self.optimizer if rule.optimizer is None else rule.optimizer
            if not self.trains and (own or rule.states):
                yield Contradiction("an optimizer, and trains false: it steps nothing", "trains")
            if rule.precision and rule.precision not in bundled(Method):
                unknown = NameUnknown(Method.KIND, rule.precision, bundled(Method))
                yield Contradiction(str(unknown), "layers", place, "precision")
            if "logic" in rule.arithmetic.values() and any(
                isinstance(width, float) for width in (rule.weights, rule.inputs)
            ):
                yield Contradiction("a logic operation has whole bits", "layers", place)
            number = _STATES.get(own or "", 0)
            if rule.states is not None and len(rule.states) != number:
                yield Contradiction(
                    f"{len(rule.states)} widths, and {own or 'no optimizer named'} has "
                    f"{number} states",
                    "layers", place, "states",
                )  # fmt: skip

    def format_of(self, width: float | str) -> Format | None:
        """Return the format that a width names; None for a number or a word of the accounting."""
        return self.formats.get(str(width)) or formats().get(str(width))

    def check_references(self) -> None:
        """See that every method named by a rule exists. Raises: NameUnknown, SpecError."""
        self.references()
        self.see_limited()

    def see_limited(self) -> None:
        """See that there are Boolean weights where widths are limited. Raises: SpecError."""
        if self.widths is not None and not self.flips:
            raise SpecError(f"method {self.name}: widths are of Boolean weights, and it has none")

    @property
    def flips(self) -> bool:
        """Whether some rule has weights that are trained by flips. Raises: NameUnknown."""
        rules = (rule for method in (self, *self.references()) for rule in method.layers)
        return any(rule.update == "boolean" for rule in rules)

    def references(self) -> tuple[Method, ...]:
        """Return the methods that the rules name, and those that theirs do. Raises: NameUnknown."""
        named = dict.fromkeys(rule.precision for rule in self.layers if rule.precision)
        found: list[Method] = []
        for method in map(referred, named):
            found += [method, *method.references()]
        return tuple(found)


@cache
def referred(name: str) -> Method:
    """Return a bundled method; a path is no name here. Raises: NameUnknown."""
    known = bundled(Method)
    if name not in known:
        raise NameUnknown(Method.KIND, name, known)
    return load(Method, name)
