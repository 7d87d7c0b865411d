"""What a recorder keeps of a PyTorch layer: extents, ranges of every step, sizes of measured ones.

Ranges are reduced where the tensors are, so that a step without a measurement waits for no copy.
Everything else is measured by the trainer's own code (`hwmodel/trainer/measure.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from operator import getitem
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hwmodel.errors import HwmodelError, ShapeError
from hwmodel.specs.trace import (
    LayerEpoch,
    LayerShape,
    Magnitudes,
    Range,
    sum_bits,
    two_complement_bits,
)
from hwmodel.trainer.measure import Sizes

__all__ = ["Pair", "Recorded", "Use", "are_finite", "array", "extremes", "levels"]

Kind = Literal["boolean", "binary", "real"]
Grid = Literal["signs", "whole", "real"]  # sums of +1 and -1; multiples of a half; any
Pair = tuple[Any, Any]  # the lowest and the highest of a tensor
FLOAT32 = float(np.finfo(np.float32).max)
TOGETHER = 64  # steps whose ranges are reduced at a time
MEMORIES = ("accum", "momentum")  # how optimizers call what they remember of votes


def levels(weight: Any) -> Kind:
    """What kind of weights these are: all of them -1 and 1, or 0 and 1, or real."""
    w = weight.detach().float()
    two = bool((w.abs() == 1).all()) or bool(((w == 0) | (w == 1)).all())
    return "boolean" if two and bool(w.min() < w.max()) else "real"


def extremes(values: Any) -> Pair:
    """The lowest and the highest of values, where the tensor is."""
    low, high = values.aminmax()
    return low, high


def are_finite(pairs: list[Pair]) -> bool:
    """Whether all of the ranges are of numbers, told by one copy from where the tensors are."""
    import torch

    if not pairs or pairs[0][0].device.type == "cpu":  # several times faster there
        return all(abs(one.item()) <= FLOAT32 for pair in pairs for one in pair)
    to = {"device": pairs[0][0].device, "dtype": torch.float32}
    return bool(torch.stack([one.to(**to) for pair in pairs for one in pair]).isfinite().all())


class Extremes:
    """The lowest and the highest value so far, kept where the tensors are."""

    def __init__(self) -> None:
        self._pairs: list[Pair] = []

    def see(self, pair: Pair) -> None:
        """Take in the range of a step."""
        self._pairs.append(pair)
        if len(self._pairs) >= TOGETHER:
            self._pairs = [self._all()]

    def _all(self) -> Pair:
        import torch

        low, high = zip(*self._pairs, strict=True)
        return torch.stack(low).min(), torch.stack(high).max()

    def found(self, name: str) -> tuple[float, float]:
        """Return both. Raises: HwmodelError where they are no numbers any more."""
        low, high = (float(value) for value in self._all())
        if not (math.isfinite(low) and math.isfinite(high)):
            raise HwmodelError(f"record: {name} left the range of numbers")
        return low, high


@dataclass
class Tensor:
    """One tensor of a layer over the steps of an epoch."""

    sizes: Sizes
    extremes: Extremes = field(default_factory=Extremes)

    def step(self, pair: Pair, values: NDArray[Any] | None) -> None:
        """Take in a step: its range, and its values if it is measured."""
        self.extremes.see(pair)
        if values is not None:
            self.sizes.step(values)

    def result(self, name: str) -> Magnitudes:
        """Return what the trace records."""
        low, high = self.extremes.found(name)
        self.sizes.largest = max(-low, high, 0.0)
        return self.sizes.result()


def array(values: Any) -> NDArray[Any]:
    """A copy of the values as an array; half-precision ones, which NumPy may not know, in float32.

    A copy, because what a backward pass gives a hook may be overwritten after it.
    """
    values = values.detach().cpu()
    return np.array((values.float() if values.element_size() < 4 else values).numpy())


@dataclass(eq=False)
class Recorded:
    """A layer with products: its weights, and what is kept of them in an epoch.

    Attributes:
        name: the way to it in the model.
        weight: its parameter.
        error: at which widths are stated.
        uses: its places in a pass.
        learns: whether there ever was a vote.
        stepped: the step in which an optimizer last had it.
    """

    name: str
    weight: Any
    kind: Kind
    error: float
    uses: list[Use] = field(default_factory=list)
    tensors: dict[str, Tensor] = field(default_factory=dict)
    learns: bool = False
    stepped: int = -1
    flips: int = 0
    steps: int = 0
    before: Any = None
    memory: Callable[[], Any] | None = None

    def begin_epoch(self) -> None:
        """Forget the epoch before."""
        self.tensors, self.flips, self.steps = {}, 0, 0

    @property
    def signed(self) -> bool:
        """Whether the weights multiply as +1 and -1."""
        return self.kind == "binary" or bool((self.weight.detach() < 0).any())

    def _positive(self) -> Any:
        """The weights' signs; 0 is + of latent weights, and F of Boolean ones."""
        weight = self.weight.detach()
        if weight.device.type == "cpu":  # a third of the time
            weight = (weight.float() if weight.element_size() < 4 else weight).numpy()
        return weight >= 0 if self.kind == "binary" else weight > 0

    def _see(self, what: str, values: Any, *, measured: bool) -> None:
        if what not in self.tensors:
            self.tensors[what] = Tensor(Sizes(self.error))
        pair = extremes(values.detach())
        if are_finite([pair]):
            self.tensors[what].step(pair, array(values) if measured else None)

    def vote(self, *, measured: bool) -> None:
        """Look at the votes before a step of the optimizer."""
        if self.kind == "real" or self.weight.grad is None:
            return
        self.learns = True
        self._see("vote", self.weight.grad, measured=measured)
        if self.before is None:
            self.before = self._positive()

    def step(self, optimizer: Any, *, measured: bool) -> None:
        """Count the flips of a step, and look at what the optimizer remembers."""
        if self.kind == "real":
            return
        self.steps += 1
        now = self._positive()
        if self.before is not None:
            self.flips += _count_nonzero(now != self.before)
        self.before = now
        if self.steps == 1 and self.memory is None:  # once an epoch: it is there or it is not
            self.memory = _memory(optimizer, self.weight)
        if self.memory is not None:
            self._see("optimizer_state", self.memory(), measured=measured)

    def result(self, steps: int) -> dict[str, Any]:
        """Return the fields of a trace that are of the weights, after so many steps of the run.

        Flips are of a step of the run: an optimizer that steps less often flips less of them.
        """
        found = {
            what: t.result(f"{what} of {self.name}")
            for what, t in self.tensors.items()
            if t.sizes.values
        }
        rate = self.flips / (self.weight.numel() * steps) if self.stepped >= 0 else None
        rate = None if self.kind == "real" else rate
        return {"flip_rate": rate, "vote": None, "optimizer_state": None} | found


def _memory(optimizer: Any, weight: Any) -> Callable[[], Any] | None:
    """Find what an optimizer remembers of a weight's votes: in its state, or beside its parameters.

    The published Boolean optimizer keeps lists in the groups, in the order of their parameters.
    What is returned reads it anew: a step may put another tensor in its place.
    """
    found: dict[str, tuple[Any, ...]] = {}  # what holds it, and the way from there
    state = optimizer.state.get(weight, {})
    found |= {str(key): (state, key) for key, value in state.items() if _like(value, weight)}
    for group in optimizer.param_groups:
        place = next((i for i, p in enumerate(group["params"]) if p is weight), None)
        for key, values in group.items():
            if place is None or key == "params" or not isinstance(values, (list, tuple)):
                continue
            if len(values) == len(group["params"]) and _like(values[place], weight):
                found[str(key)] = (group, key, place)
    called = [one for key, one in found.items() if any(word in key for word in MEMORIES)]
    known = called or list(found.values())
    if len(known) != 1:
        return None
    holder, *way = known[0]
    return lambda: reduce(getitem, way, holder)


def _count_nonzero(values: Any) -> int:
    return int(np.count_nonzero(values) if isinstance(values, np.ndarray) else values.sum())


def _like(value: Any, weight: Any) -> bool:
    return hasattr(value, "detach") and value.shape == weight.shape


class Use:
    """A layer in one of its places in a pass: its extents, sums and signals."""

    def __init__(self, layer: Recorded, number: int) -> None:
        self.layer = layer
        self.name = layer.name if number == 1 else f"{layer.name}+{number}"
        self.extents: dict[str, Any] = {}
        self._shapes: tuple[Any, ...] = ()
        self.begin_epoch()

    def begin_epoch(self) -> None:
        """Forget the epoch before."""
        self._range = Extremes()
        self._count, self._total, self._squares = 0, 0.0, 0.0
        self._read, self._zeros = 0, 0
        self._grid: Grid = "signs"
        self._tensors = {what: Tensor(Sizes(self.layer.error)) for what in ("signal", "sent")}

    def see(self, module: Any, x: Any, y: Any) -> None:
        """Take in the extents of a pass. Raises: ShapeError where they change or are none."""
        shapes = (tuple(x.shape[1:]), tuple(y.shape[1:]))
        if not self.extents:
            self.extents, self._shapes = _extents(self.name, self.layer.kind, module, x, y), shapes
        elif shapes != self._shapes:
            raise ShapeError(
                f"record: {self.name} takes {shapes[0]} and gives {shapes[1]} elements an image, "
                f"before {self._shapes[0]} and {self._shapes[1]}"
            )

    def sums(self, x: Any, y: Any, pair: Pair, *, measured: bool) -> Callable[[], None]:
        """Look at the sums of a pass, of a range; what is returned takes them in."""
        if not measured:
            return lambda: self._range.see(pair)
        exact = array(y).astype(np.float64).ravel()
        total, squares = float(exact.sum()), float((exact * exact).sum())
        real = self.layer.kind == "real" or bool((2 * exact != np.rint(2 * exact)).any())
        signs = not real and self.layer.signed and _signs(x)
        zeros = x.numel() - _count_nonzero(x != 0)
        read = 0 if not zeros and _signs(x) else x.numel()  # signs have none

        def put() -> None:
            self._range.see(pair)
            self._read += read
            self._zeros += zeros
            self._count += exact.size
            self._total += total
            self._squares += squares
            if real:
                self._grid = "real"
            elif self._grid == "signs" and not signs:
                self._grid = "whole"

        return put

    def tensor(self, what: str, pair: Pair, values: NDArray[Any] | None) -> None:
        """Take in the signal that was received, or sent."""
        self._tensors[what].step(pair, values)

    @property
    def seen(self) -> bool:
        """Whether a step was measured."""
        return bool(self._count and self._tensors["signal"].sizes.values)

    def epoch(self, steps: int) -> LayerEpoch:
        """Return the epoch of so many steps.

        Raises: HwmodelError where no signal came, or it was no number.
        """
        signal, sent = (self._tensors[what] for what in ("signal", "sent"))
        if not self.seen:
            raise HwmodelError(
                f"record: {self.name} received no signal in this epoch: frozen, or not on the way "
                "to the loss"
            )
        low, high = self._range.found(f"the output of {self.name}")
        mean = self._total / self._count
        spread = math.sqrt(max(self._squares / self._count - mean * mean, 0.0))
        return LayerEpoch(
            name=self.name,
            input_zeros=self._zeros / self._read if self._read else None,
            preactivation=Range(lowest=low, highest=high, mean=mean, deviation=spread),
            sum_bits=self._sum_bits(low, high),
            signal=signal.result(f"the signal to {self.name}"),
            sent=sent.result(f"the signal from {self.name}") if sent.sizes.values else None,
            **self.layer.result(steps),
        )

    def _sum_bits(self, low: float, high: float) -> int | None:
        """Width of the sums that occurred; of other terms than signs each step is of one."""
        if self._grid == "real":
            return None
        return (sum_bits if self._grid == "signs" else two_complement_bits)(
            math.floor(low), math.floor(high)
        )

    def shape(self, batch: int) -> LayerShape:
        """Return what the trace says of the layer, for steps of so many images."""
        fan_in, boolean = self.extents["fan_in"], self.layer.kind == "boolean"
        return LayerShape(
            name=self.name, weights=self.layer.kind, N=batch,
            worst_sum_bits=sum_bits(-fan_in, fan_in) if boolean else None, **self.extents,
        )  # fmt: skip


def _signs(x: Any) -> bool:
    """Whether values are -1, 1, and 0 where there is no effect."""
    return bool(((x == 0) | (x.abs() == 1)).all()) if x.is_floating_point() else False


def _extents(name: str, kind: Kind, module: Any, x: Any, y: Any) -> dict[str, Any]:
    """The extents of a layer [elements]. Raises: ShapeError for what is no layer of a network."""
    weight, bias = module.weight, getattr(module, "bias", None)
    M, C, *taps = weight.shape
    places = tuple(y.shape[2:] if taps else y.shape[1:-1])
    outs = y.shape[1 if taps else -1] if y.dim() > 1 else 0
    if outs != M or (taps and y.dim() != 4) or len(places) > 2:
        wanted = "images x M x rows x columns" if taps else "images x places x M"
        raise ShapeError(
            f"record: {name} gives {tuple(y.shape)} by weights {tuple(weight.shape)}, not {wanted}"
        )
    HO, WO = (*places, 1, 1)[:2]
    HF, WF = taps or (1, 1)
    groups = int(getattr(module, "groups", x.shape[1] // C if taps else 1))
    stride, dilation = (_pair(getattr(module, what, 1)) for what in ("stride", "dilation"))
    return {
        "kind": "conv" if taps else "linear", "M": M, "C": C * groups, "HO": HO, "WO": WO,
        "HF": HF, "WF": WF, "stride": _one(stride), "dilation": _one(dilation), "groups": groups,
        "padding": _one(_padding(getattr(module, "padding", 0), (HF, WF), dilation)),
        "fan_in": C * HF * WF + (kind == "boolean" and bias is not None),
        "parameters": weight.numel() + (0 if bias is None else bias.numel()),
    }  # fmt: skip


def _pair(value: Any) -> tuple[int, int]:
    rows, columns = value if isinstance(value, (tuple, list)) else (value, value)
    return int(rows), int(columns)


def _padding(
    value: Any, taps: tuple[int, int], dilation: tuple[int, int]
) -> tuple[int, int, int, int]:
    """Before rows and columns, then after them; "same" puts the odd one after."""
    if value == "same":
        whole = [d * (k - 1) for d, k in zip(dilation, taps, strict=True)]
        return whole[0] // 2, whole[1] // 2, whole[0] - whole[0] // 2, whole[1] - whole[1] // 2
    rows, columns = (0, 0) if value == "valid" else _pair(value)
    return rows, columns, rows, columns


def _one(values: tuple[int, ...]) -> Any:
    return values[0] if len({*values}) == 1 else values
