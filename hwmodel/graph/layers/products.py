"""Layers that multiply by weights: convolutions and linear layers."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Literal

from pydantic import Field, PrivateAttr, model_validator

from hwmodel.errors import ShapeError
from hwmodel.graph.layers.base import BaseLayer, Pair, Positive, Shape, Sides, Sliding, Width, reach
from hwmodel.graph.layers.experts import Dispatch, routed
from hwmodel.specs.files import Flag
from hwmodel.specs.formats import Format
from hwmodel.work.problem import PASSES, Extents, LoopNest, ProductPass, Tensor, Window

__all__ = ["Conv", "ConvTranspose", "Linear"]


class _Channelled(Sliding):
    """Fields and answers that a convolution and its transpose share."""

    channels: Positive
    stride: Pair = (1, 1)
    dilation: Pair = (1, 1)
    groups: Positive = 1
    frames: Positive = Field(
        default=1,
        description="images one after the other in the channels, under the same filters",
    )
    bias: Flag = False
    weight_bits: Width | None = Field(
        default=None, description="width of a weight that the network itself states [bit]"
    )

    def weights(self, inputs: Sequence[Shape]) -> int:
        """M * C/g * HF * WF."""
        return self.channels * (self._frame(inputs)[0] // self.groups) * self.window

    def other_parameters(self, inputs: Sequence[Shape]) -> int:
        """M biases, if any."""
        return self.channels * self.bias

    def terms(self, inputs: Sequence[Shape], before: Sequence[int]) -> int:
        """C/g * HF * WF, each a product of operands taken as +-1."""
        return self.weights(inputs) // self.channels

    def _frame(self, inputs: Sequence[Shape]) -> Shape:
        """The input of one frame. Raises: ShapeError where frames do not divide the channels."""
        C, H, W = self.one(inputs)
        if C % self.frames:
            raise ShapeError(
                f"layer {self.name}: {self.frames} frames do not divide the {C} channels of its "
                f"input {(C, H, W)}"
            )
        return C // self.frames, H, W

    def _check_groups(self, shape: Shape) -> None:
        if self.groups == 1:
            return
        for word, channels in (("input", shape[0]), ("output", self.channels)):
            if channels % self.groups:
                raise ShapeError(
                    f"layer {self.name}: groups {self.groups} does not divide the {channels} "
                    f"{word} channels (input {shape}, channels {self.channels})"
                )

    def _windows(self, axis: int, size: int, out: int) -> dict[ProductPass, Window]:
        """Return the windows of the convolution from `size` to `out` rows, by pass."""
        step, dilation = self.stride[axis], self.dilation[axis]
        before, after = self.padding[axis], self.padding[axis + 2]
        span = reach(self.kernel[axis], dilation) - 1
        return {
            "forward": Window(size, step, dilation, before, after),
            "backward_input": Window(out, 1, dilation, span - before, span - after, step),
            "backward_weight": Window(size, dilation, step, before, after),
        }


class Conv(_Channelled):
    """A 2-D convolution to `channels` channels."""

    kind: Literal["conv"]

    def output_shape(self, inputs: Sequence[Shape]) -> Shape:
        """(M, HO, WO): HO = floor((H + p1 + p2 - d (K - 1) - 1) / s) + 1. Raises: ShapeError."""
        shape = self._frame(inputs)
        self._check_groups(shape)
        rows, columns = self.slide(shape, self.stride, self.dilation)
        return self.frames * self.channels, rows, columns

    def macs(self, inputs: Sequence[Shape]) -> int:
        """M * C/g * HF * WF * HO * WO, for each frame."""
        return self.weights(inputs) * prod(self.output_shape(inputs)[1:]) * self.frames

    def loops(self, inputs: Sequence[Shape], batch: int) -> dict[ProductPass, LoopNest]:
        """Return the three convolutions of a training iteration (docs/model.md section 1).

        forward: O[n,m] = sum over c, taps of I[n,c] F[m,c].
        backward_input: dI[n,c] = sum over m, taps of dO[n,m] F[m,c], the kernel turned round; of
            the dO spread out by the stride only every s-th position is a row.
        backward_weight: dF[m,c] = sum over n, positions of I[n,c] dO[n,m]: C images of N channels
            under M filters as large as dO, stride and dilation changing places.
        """
        (C, H, W), (_, HO, WO), g = self._frame(inputs), self.output_shape(inputs), self.groups
        (HF, WF), N = self.kernel, batch * self.frames
        C, M = C // g, self.channels // g
        height, width = self._windows(0, H, HO), self._windows(1, W, WO)
        extents = {
            "forward": Extents(N, M, C, HO, WO, HF, WF),
            "backward_input": Extents(N, C, M, H, W, HF, WF),
            "backward_weight": Extents(C, M, N, HF, WF, HO, WO),
        }
        return {p: LoopNest(extents[p], height[p], width[p], g, PASSES[p]) for p in PASSES}


class ConvTranspose(_Channelled):
    """The transpose of a convolution: its forward pass is that convolution's backward_input."""

    kind: Literal["conv-transpose"]
    output_padding: Sides = Field(
        default=(0, 0, 0, 0), description="rows, columns added at the end"
    )

    def output_shape(self, inputs: Sequence[Shape]) -> Shape:
        """(M, HO, WO): HO = (H - 1) s - p1 - p2 + d (K - 1) + 1 + extra. Raises: ShapeError."""
        shape = self._frame(inputs)
        self._check_groups(shape)
        sizes = [
            (size - 1) * self.stride[axis]
            - self.padding[axis]
            - self.padding[axis + 2]
            + reach(self.kernel[axis], self.dilation[axis])
            + self.output_padding[axis]
            for axis, size in enumerate(shape[1:])
        ]
        if min(sizes) < 1:
            raise ShapeError(
                f"layer {self.name}: its input {shape} with padding {list(self.padding)} "
                f"leaves an output of {sizes[0]} x {sizes[1]}"
            )
        return self.frames * self.channels, sizes[0], sizes[1]

    def macs(self, inputs: Sequence[Shape]) -> int:
        """M * C/g * HF * WF * H * W for each frame: those of the convolution it transposes."""
        return self.weights(inputs) * prod(self.one(inputs)[1:]) * self.frames

    def loops(self, inputs: Sequence[Shape], batch: int) -> dict[ProductPass, LoopNest]:
        """Return the three passes, forward and backward_input of the convolution exchanged.

        That convolution takes M channels of O to C channels of I; its filters are F.
        """
        (C, H, W), (_, HO, WO), g = self._frame(inputs), self.output_shape(inputs), self.groups
        (HF, WF), N = self.kernel, batch * self.frames
        C, M = C // g, self.channels // g
        height, width = self._windows(0, HO, H), self._windows(1, WO, W)
        nests: dict[ProductPass, tuple[ProductPass, Extents, tuple[Tensor, Tensor, Tensor]]] = {
            "forward": ("backward_input", Extents(N, M, C, HO, WO, HF, WF), PASSES["forward"]),
            "backward_input": ("forward", Extents(N, C, M, H, W, HF, WF), PASSES["backward_input"]),
            # dO is what the filter slides over here, and I what slides.
            "backward_weight": (
                "backward_weight",
                Extents(M, C, N, HF, WF, H, W),
                ("dO", "I", "dF"),
            ),
        }
        return {p: LoopNest(e, height[q], width[q], g, t) for p, (q, e, t) in nests.items()}


class Linear(BaseLayer):
    """A fully connected layer over all elements of its input, or over the channels of each place.

    Left out, `over` is all, but for a sequence (features, tokens, 1), which is not flattened
    unless that is said.
    """

    kind: Literal["linear"]
    features: Positive
    over: Literal["all", "channels"] | None = None
    bias: Flag = False
    experts: Positive | None = Field(
        default=None, description="layers of which each token goes to some, behind a dispatch"
    )
    _sent: Dispatch | None = PrivateAttr(default=None)
    weight_bits: Width | None = Field(
        default=None, description="width of a weight that the network itself states [bit]"
    )
    weight_format: Format | None = Field(
        default=None,
        description="in the place of weight_bits: blocks of the weights of an output share scales",
    )

    @model_validator(mode="after")
    def _one_width(self) -> Linear:
        if self.weight_bits and self.weight_format:
            raise ValueError("weight_bits and weight_format: give one of them")
        return self

    def output_shape(self, inputs: Sequence[Shape]) -> Shape:
        """(M, 1, 1), or (M, H, W) over channels."""
        _, H, W = self._seen(inputs)
        return self.features, H, W

    def weights(self, inputs: Sequence[Shape]) -> int:
        """M * C, with C all elements of the input or its channels; of every expert."""
        return self.features * self._seen(inputs)[0] * (self.experts or 1)

    def other_parameters(self, inputs: Sequence[Shape]) -> int:
        """M biases, if any; of every expert."""
        return self.features * self.bias * (self.experts or 1)

    def terms(self, inputs: Sequence[Shape], before: Sequence[int]) -> int:
        """C, each a product of operands taken as +-1."""
        return self._seen(inputs)[0]

    def macs(self, inputs: Sequence[Shape]) -> int:
        """M * C at each place."""
        return self.features * prod(self._seen(inputs))

    def behind(self, sent: Dispatch | None) -> Linear:
        """The layer of experts, told how tokens come to it. Raises: ShapeError."""
        if sent is None:
            raise ShapeError(f"layer {self.name}: experts, but no dispatch before it")
        if self.over != "channels":
            raise ShapeError(f"layer {self.name}: experts are for over: channels")
        sent.see(self.experts or 1)
        told = self.model_copy()
        told._sent = sent
        return told

    def loops(self, inputs: Sequence[Shape], batch: int) -> dict[ProductPass, LoopNest]:
        """Return a convolution on one pixel with one tap; places are further images."""
        C, H, W = self._seen(inputs)
        if self.experts and self._sent:
            return routed(self._sent, self.experts, self.features, C, batch * H * W)
        pixel = Conv(name=self.name, kind="conv", channels=self.features, kernel=(1, 1))
        return pixel.loops([(C, 1, 1)], batch * H * W)

    def _seen(self, inputs: Sequence[Shape]) -> Shape:
        shape = self.one(inputs)
        if self.over is None and min(shape[:2]) > 1 and shape[2] == 1:
            raise ShapeError(
                f"layer {self.name}: its input {shape} may be a sequence of {shape[1]:,} tokens; "
                "say over: channels for a product at each, or over: all for one of all together"
            )
        return shape if self.over == "channels" else (prod(shape), 1, 1)
