"""A network while it is read: values, constants, and the layers so far.

A `Value` is a tensor of the source's graph. It knows the layer here whose output holds its
elements; reshapes and transpositions of it only change its dimensions, and a `reshape` layer, a
view that moves nothing, stands in the network only where a layer needs another shape. Chains of
elementary operators stay pending until something else takes the result: see `samples`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import prod
from operator import itemgetter
from re import compile, sub
from typing import Any, NamedTuple

from pydantic import ValidationError

from hwmodel.errors import ShapeError
from hwmodel.graph.layers import (
    KINDS,
    Activation,
    Add,
    BaseLayer,
    GlobalAveragePool,
    LayerNorm,
    Multiply,
    Reshape,
    RMSNorm,
    Scale,
    Shape,
    Source,
    Uncounted,
)
from hwmodel.graph.network import INPUT, MAX_LAYERS
from hwmodel.importers.samples import BINARY, ROWS, Samples, recognised
from hwmodel.specs.formats import Format
from hwmodel.work.tensor import Stated, stated_bits

__all__ = [
    "AFFINE",
    "COMBINED",
    "Blocks",
    "Constant",
    "Dims",
    "Graph",
    "Operand",
    "Value",
    "as_value",
]
__all__ += [
    "combined",
    "frames",
    "function_of",
    "learned_of",
    "of_one",
    "pair",
    "plain",
    "text",
    "tokens",
]

Dims = tuple[int, ...]
Elements = tuple[float, ...] | None
LONGEST = 40  # elementary operators in a chain
_PROPER = compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.+-]{0,70}[A-Za-z0-9])?")
AFFINE = {"Mul": "affine", "Add": "affine"}  # what may follow a norm, and its field
NORMS: dict[str, tuple[type[BaseLayer], dict[str, str]]] = {
    "layer-norm": (LayerNorm, AFFINE),
    "rms-norm": (RMSNorm, {"Mul": "affine"}),
}
COMBINED: dict[str, type[BaseLayer]] = {"Add": Add, "Sub": Add, "Mul": Multiply}


class Blocks(NamedTuple):
    """Elements side by side along one axis that share a scale."""

    along: int  # elements of the axis
    format: Format


class Constant(NamedTuple):
    """A tensor that does not depend on the network's inputs; its elements are rarely known."""

    dims: Dims
    key: str = ""  # one for each stored tensor
    learned: bool = False
    elements: Elements | Callable[[], Elements] = None  # where they are few, or what reads them
    bits: Stated | None = None  # that a quantizer states [bit]
    frozen: bool = False  # whether it is a parameter that is not trained
    float_bits: int = 32  # of an element as it is stored, where it is floating [bit]
    blocks: Blocks | None = None  # of which each has a scale, where a quantizer states them

    @property
    def stored(self) -> bool:
        """Whether it is a parameter: it is learned, or is too narrow for a shape or an index."""
        narrow = self.bits is not None and stated_bits(self.bits) <= 8
        return self.learned or (narrow and prod(self.dims) > 1)

    @property
    def values(self) -> Elements:
        """The elements, where known."""
        return self.elements() if callable(self.elements) else self.elements

    @property
    def number(self) -> float | None:
        """The value where it is a single known number."""
        values = self.values
        return values[0] if values and len(values) == 1 else None

    @property
    def whole(self) -> tuple[int, ...] | None:
        """The values as whole numbers, where known."""
        values = self.values
        return None if values is None else tuple(int(value) for value in values)


class _Form(NamedTuple):
    """A pending value: a function of `base`, known by its samples."""

    base: Value
    samples: Samples
    name: str  # of the layer it will become
    operator: str  # the last one
    parts: tuple[Value, ...]  # what the last one takes
    function: Callable[[Samples], Samples] | None  # of the last one, where it takes one
    length: int  # operators in the chain


@dataclass(eq=False, slots=True)
class Value:
    """A tensor that depends on the network's inputs."""

    dims: Dims | None  # of one image, as the source's graph has them; None: not known
    layer: str  # whose output holds the elements; "" while pending
    shape: Shape  # of that layer's output
    form: _Form | None = None
    readers: int = 1

    @property
    def known(self) -> Dims:
        """Its dimensions. Raises: ShapeError where they depend on data or on an open input."""
        if self.dims is None:
            raise ShapeError(
                f"dimensions of what {self.layer or 'it takes'} gives are not known: they depend "
                "on the data, or attributes and inputs do not fit"
            )
        return self.dims


Operand = Value | Constant


def plain(dims: Sequence[int]) -> Shape:
    """Return (C, H, W) of dimensions with channels first: all but the last two make up C."""
    rest = tuple(dims[1:] if dims and dims[0] == 1 else dims)
    if len(rest) > 3:
        return prod(rest[:-2]), rest[-2], rest[-1]
    C, H, W = (*rest, 1, 1, 1)[:3]
    return C, H, W


def frames(dims: Sequence[int], axes: int) -> tuple[int, Shape]:
    """How many frames dimensions (frames, C, rows and columns …) hold, and (frames x C, H, W)."""
    number = prod(dims[: -axes - 1])
    H, W = pair(dims[-axes:])
    return number, (number * dims[-axes - 1], H, W)


def tokens(dims: Sequence[int]) -> Shape:
    """Return (C, H, W) of dimensions with features last: (tokens, D) is (D, tokens, 1)."""
    rest = tuple(dims[1:-1] if dims and dims[0] == 1 and len(dims) > 1 else dims[:-1])
    D = dims[-1] if dims else 1
    return (D, *plain((1, *rest))[:2]) if len(rest) < 3 else (D, prod(rest[:-1]), rest[-1])


class Graph:
    """Layers in order, each under a name of its own."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.images = 1  # in every tensor of the source's graph
        self.layers: list[Any] = []
        self.shapes: dict[str, Shape] = {}
        self.inputs: dict[str, tuple[str, ...]] = {}
        self.open: dict[str, dict[str, str]] = {}  # layer -> operator it can take in -> its field
        self._index: dict[str, int] = {}
        self._taken: dict[str, int] = {INPUT: 1}  # names, and how often each has been asked for
        self._views: dict[tuple[str, Shape], str] = {}
        self._owners: dict[str, str] = {}

    def put(
        self,
        kind: type[BaseLayer],
        name: str,
        inputs: Sequence[str],
        dims: Dims | None,
        **fields: Any,
    ) -> Value:
        """Add a layer and return its value. Raises: ShapeError, also where `dims` disagree."""
        name, inputs = self.unused(name), tuple(inputs)
        last = self.layers[-1].name if self.layers else INPUT
        if inputs and inputs != (last,):  # which goes without saying
            fields["inputs"] = inputs
        try:
            layer = kind(name=name, kind=KINDS[kind], **fields)  # type: ignore[call-arg]
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(map(str, first["loc"]))
            raise ShapeError(f"{self.where}: {name}: {field}: {first['msg']}") from None
        shape = layer.output_shape([self.shapes[i] for i in inputs])
        if dims is not None and prod(shape) != prod(dims):
            raise ShapeError(
                f"{self.where}: {name}: gives {list(dims)} in the file, but its attributes and "
                f"inputs make it {shape}"
            )
        if len(self.layers) >= MAX_LAYERS:
            raise ShapeError(f"{self.where}: more than {MAX_LAYERS:,} layers")
        self._index[name] = len(self.layers)
        self.layers.append(layer)
        self.inputs[name] = inputs
        self.shapes[name] = shape
        return Value(dims, name, shape)

    def undo(self, name: str) -> None:
        """Take the last layer back."""
        assert self.layers and self.layers[-1].name == name
        self.layers.pop()
        del self.shapes[name], self._index[name], self._taken[name]

    def unused(self, name: str) -> str:
        """Return `name` in letters that a network file allows, with a number where it is taken."""
        name = text(name)
        if not _PROPER.fullmatch(name):
            name = sub(r"[^A-Za-z0-9_.+-]+", ".", name).strip("._+-")
            name = name[-72:].lstrip("._+-") or "layer"
        while name in self._taken:
            self._taken[name] += 1
            name = f"{name}-{self._taken[name]}"
        self._taken[name] = 1
        return name

    def change(self, name: str, **fields: Any) -> None:
        """Replace a layer by one with other fields."""
        at = self._index[name]
        self.layers[at] = self.layers[at].model_copy(update=fields)

    def layer(self, name: str) -> Any:
        """Return a layer by its name; None for the network's input."""
        return self.layers[self._index[name]] if name in self._index else None

    def seen(self, value: Value, shape: Shape | None = None) -> str:
        """Return the layer whose output is `value` in `shape`; by default in its own shape."""
        self.settle(value)
        if shape is None or shape == value.shape:
            return value.layer
        key = value.layer, shape
        if key not in self._views:
            seen = self.layer(value.layer)
            bits = None if seen is None else seen.bits
            name = f"{value.layer}.view"
            view = self.put(Reshape, name, [value.layer], None, shape=shape, bits=bits)
            self._views[key] = view.layer
        return self._views[key]

    def owner(self, weights: Constant) -> str | None:
        """Return the layer that has these weights already, if one does."""
        return self._owners.get(weights.key)

    def owned(self, weights: Constant, made: Value) -> Value:
        """Note that a layer has these weights; return the layer's value."""
        if weights.key:
            self._owners.setdefault(weights.key, made.layer)
        return made

    def uncounted(
        self,
        name: str,
        operator: str,
        inputs: Sequence[Operand | None],
        dims: Dims | None,
        *,
        macs: int | None = None,
        biases: int = 0,
    ) -> Value:
        """Add a layer without a model; its operator says so if its shape is not known either.

        Args:
            inputs: those of its parameters that no layer has yet are its own.
            macs: multiply-accumulates of one pass, where they are known.
            biases: further parameters of its own.
        """
        names = [self.seen(x) for x in inputs if isinstance(x, Value)]
        if not names:
            return self.put(Source, name, [], dims, shape=plain(dims or ()))
        if dims is None:
            operator = f"{operator}, shape unknown"
        stored = [x for x in inputs if isinstance(x, Constant) and x.stored]
        own = {x.key: x for x in stored if self.owner(x) is None}.values()
        fields: dict[str, Any] = {"shape": None if dims is None else plain(dims)}
        fields |= {"known_macs": macs, "parameters": biases + sum(prod(x.dims) for x in own)}
        if own and all(x.frozen for x in own):
            fields["learned"] = False
        made = self.put(Uncounted, name, names, dims, operator=operator, **fields)
        for x in own:
            self.owned(x, made)
        return made

    # Chains of elementary operators

    def pending(
        self,
        name: str,
        operator: str,
        parts: Sequence[Value],
        function: Callable[..., Samples],
        dims: Dims | None,
    ) -> Value | None:
        """Return the pending value of an operator on functions of one base, if there is one."""
        forms = [self._open_form(part) for part in parts]
        length = 1 + sum(form.length if form else 0 for form in forms)
        if length > LONGEST:
            for part in parts:
                self.settle(part)
            forms, length = [None] * len(parts), 1
        bases = {
            id(f.base if f else p): f.base if f else p for f, p in zip(forms, parts, strict=True)
        }
        if len(bases) > 1:
            return None
        base = next(iter(bases.values()))
        with _silent():
            samples = function(*(form.samples if form else ROWS for form in forms))
        one = function if len(parts) == 1 else None
        form = _Form(base, samples, name, operator, tuple(parts), one, length)
        return Value(dims, "", base.shape, form)

    def _open_form(self, part: Value) -> _Form | None:
        """Return the chain that goes on at `part`; a function that several take ends it."""
        if part.form and part.readers > 1 and recognised(part.form.samples):
            self.settle(part)
            part.form = None
        return part.form

    def settle(self, value: Value) -> None:
        """See that a value has a layer."""
        if value.layer:
            return
        form = value.form
        assert form is not None
        name = recognised(form.samples)
        if name is None:
            self._settle_last(value, form)
            return
        base = self.seen(form.base)
        found = form.base if name == "nothing" else self._function(name, form, base, value.dims)
        value.layer, value.shape = found.layer, found.shape

    def _function(self, function: str, form: _Form, base: str, dims: Dims | None) -> Value:
        if function == "scale":
            return self.put(Scale, form.name, [base], dims, learned=False)
        if function in NORMS:
            kind, takes = NORMS[function]
            base = self.seen(form.base, tokens(form.base.known))
            made = self.put(kind, form.name, [base], dims, affine=False)
            self.open[made.layer] = dict(takes)
            return made
        return self.put(Activation, form.name, [base], dims, function=function)

    def _settle_last(self, value: Value, form: _Form) -> None:
        """Add a chain's last operator by itself, after all that it takes."""
        for part in form.parts:
            self.settle(part)
        kind = COMBINED.get(form.operator)
        if form.function is None and kind:
            found = combined(self, form.name, kind, form.parts, value.dims)
        else:
            found = self._alone(form, value.dims)
        value.layer, value.shape = found.layer, found.shape

    def _alone(self, form: _Form, dims: Dims | None) -> Value:
        before = form.parts[0]
        dims_before = before.dims or ()
        if form.operator == "ReduceMean" and before.shape == plain(dims_before[:3]):
            return self.put(GlobalAveragePool, form.name, [before.layer], dims)
        with _silent():
            name = recognised(form.function(ROWS)) if form.function else None
        if name == "nothing":
            return before
        if name is None or name.endswith("norm"):
            return self.uncounted(form.name, form.operator, form.parts, dims)
        return self._function(name, form, before.layer, dims)


def of_one(graph: Graph, constant: Constant, dims: Dims | None) -> Constant:
    """Take the images out of a constant, if it has as many axes as `dims` and repeats for each."""
    repeated = constant.dims[:1] == (graph.images,) and len(constant.dims) >= len(dims or (1, 1))
    return constant._replace(dims=(1, *constant.dims[1:])) if repeated else constant


def text(name: str | bytes) -> str:
    """Return a name as text; one that is no UTF-8 comes as bytes."""
    return name if isinstance(name, str) else name.decode("utf-8", "replace")


def combined(
    graph: Graph, name: str, kind: type[BaseLayer], values: Sequence[Value], dims: Dims | None
) -> Value:
    """Add a layer that combines values, reshaped where their shapes do not fit."""
    names = [graph.seen(value) for value in values]
    shapes = [value.shape for value in values]
    if dims is not None and len(set(shapes)) > 1:
        fitting = _alike(shapes, values, dims) or _grouped(values, dims)
        if fitting is None:
            return graph.uncounted(name, f"{kind.__name__} of unlike shapes", values, dims)
        names = [graph.seen(value, shape) for value, shape in zip(values, fitting, strict=True)]
    return graph.put(kind, name, names, dims)


def _alike(shapes: Sequence[Shape], values: Sequence[Value], dims: Dims) -> list[Shape] | None:
    """Find shapes in which values of different dimensions can be combined to `dims`.

    Axes are aligned at the end, as broadcasting has it; channels are first or last, whichever
    leaves the largest value as it is.
    """
    if all(prod(shape) == prod(dims) for shape in shapes):
        return [shapes[0]] * len(values)
    leading = next((i for i, length in enumerate(dims) if length > 1), len(dims) - 1)
    rests = [((1,) * len(dims) + value.known)[-len(dims) :][leading:] for value in values]
    if any(prod(rest[:-2]) not in (1, prod(dims[leading:-2])) for rest in rests):
        return None
    firsts = [plain((1, *rest)) for rest in rests]
    lasts = [tokens((1, *rest)) if len(rest) < 4 else None for rest in rests]
    kept = [
        last == shape
        for last, shape in zip(lasts, shapes, strict=True)
        if prod(shape) == prod(dims)
    ]
    chosen = lasts if any(kept) else firsts
    return [shape for shape in chosen if shape is not None]


def _grouped(values: Sequence[Value], dims: Dims) -> list[Shape] | None:
    """The same, axes side by side in one where every value is repeated along them or none is.

    None where more than three are left.
    """
    padded = [((1,) * len(dims) + value.known)[-len(dims) :] for value in values]
    axes = [
        (tuple(p[at] == length for p in padded), at) for at, length in enumerate(dims) if length > 1
    ]
    groups = [[at for _, at in same] for _, same in groupby(axes, key=itemgetter(0))]
    if len(groups) > 3:
        return None
    return [plain((1, *(prod(p[at] for at in group) for group in groups))) for p in padded]


def as_value(
    graph: Graph, name: str, operand: Operand, dims: Dims | None = None, *, last: bool = False
) -> Value:
    """Return an operand as a value; a constant becomes a layer `source` that fits `dims`."""
    if isinstance(operand, Value):
        return operand
    operand = of_one(graph, operand, dims)
    shape = (tokens if last else plain)(operand.dims)
    name = operand.key or f"{name}.constant"
    learned: bool | str = "frozen" if operand.learned and operand.frozen else operand.learned
    return graph.put(Source, name, [], operand.dims, shape=shape, learned=learned)


def learned_of(parameters: Sequence[Constant]) -> dict[str, Any]:
    """The field `learned` of a layer with weights and perhaps biases; none where all are trained.

    Weights that are trained with biases that are not count as trained, all of them.
    """
    if not parameters or not parameters[0].frozen:
        return {}
    return {"learned": False if all(one.frozen for one in parameters) else "biases"}


def pair(numbers: Sequence[int], rest: int = 1) -> tuple[int, int]:
    """Return numbers for rows and columns; if there is one axis, columns get `rest`."""
    return (numbers[0], numbers[1]) if len(numbers) > 1 else (numbers[0], rest)


def _silent() -> Any:
    import numpy as np

    return np.errstate(all="ignore")


def function_of(operator: str, number: float, *, first: bool) -> Callable[[Samples], Samples]:
    """Make a function of a binary operator and a number; `first` if the value comes first."""
    both = BINARY[operator]
    return (lambda x: both(x, number)) if first else (lambda x: both(number, x))
