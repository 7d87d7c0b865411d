"""Wiring, shared by all families: a call adds one layer and returns its name.

A call names the layer and what it takes; convolutions keep rows and columns at stride 1 unless
they are told how to pad.
"""

from __future__ import annotations

from hwmodel.graph.layers import (
    INPUT,
    Activation,
    Add,
    AveragePool,
    BatchNorm,
    Concat,
    Conv,
    GlobalAveragePool,
    Layer,
    Linear,
    MaxPool,
    Multiply,
    PixelShuffle,
    PixelUnshuffle,
    Slice,
    Upsample,
)

__all__ = ["INPUT", "Wiring"]


class Wiring:
    """A network while it is wired; `layers` is the result."""

    def __init__(self) -> None:
        self._layers: list[Layer] = []

    @property
    def layers(self) -> tuple[Layer, ...]:
        """All layers so far, each after its inputs."""
        return tuple(self._layers)

    def put(self, layer: Layer) -> str:
        """Add any layer."""
        self._layers.append(layer)
        return layer.name

    def conv(
        self,
        name: str,
        x: str,
        channels: int,
        kernel: int = 3,
        *,
        stride: int = 1,
        dilation: int = 1,
        groups: int = 1,
        padding: int | None = None,
        bias: bool = False,
        role: str | None = None,
    ) -> str:
        """A convolution with a square kernel, by default padded by half its span."""
        pad = dilation * (kernel - 1) // 2 if padding is None else padding
        return self.put(
            Conv(
                name=name, kind="conv", inputs=(x,), role=role, channels=channels,
                kernel=(kernel, kernel), stride=(stride, stride), dilation=(dilation, dilation),
                groups=groups, padding=(pad,) * 4, bias=bias,
            )
        )  # fmt: skip

    def bn(self, name: str, x: str, *, role: str | None = None) -> str:
        """Batch norm with scale and shift."""
        return self.put(BatchNorm(name=name, kind="batch-norm", inputs=(x,), role=role))

    def act(self, name: str, x: str, function: str = "method", *, role: str | None = None) -> str:
        """An activation, the method's own unless the architecture has its own."""
        fields = {"name": name, "kind": "activation", "inputs": (x,), "role": role}
        fields |= {"function": function}
        return self.put(Activation.model_validate(fields))

    def conv_bn(
        self,
        name: str,
        x: str,
        channels: int,
        kernel: int = 3,
        *,
        stride: int = 1,
        dilation: int = 1,
        groups: int = 1,
        role: str | None = None,
    ) -> str:
        """A convolution and its batch norm."""
        conv = self.conv(
            name, x, channels, kernel, stride=stride, dilation=dilation, groups=groups, role=role
        )
        return self.bn(f"{name}.bn", conv)

    def linear(
        self,
        name: str,
        x: str,
        features: int,
        *,
        tokens: bool = False,
        bias: bool = True,
        role: str | None = None,
    ) -> str:
        """A fully connected layer, over everything or over the channels of a token."""
        over = "channels" if tokens else None
        fields = {"name": name, "kind": "linear", "inputs": (x,), "role": role, "over": over}
        return self.put(Linear.model_validate(fields | {"features": features, "bias": bias}))

    def add(self, name: str, *xs: str) -> str:
        """A sum of tensors of one shape."""
        return self.put(Add(name=name, kind="add", inputs=xs))

    def multiply(self, name: str, x: str, factor: str) -> str:
        """A product, element by element or with a factor for each channel."""
        return self.put(Multiply(name=name, kind="multiply", inputs=(x, factor)))

    def concat(self, name: str, *xs: str) -> str:
        """Channels of several tensors."""
        return self.put(Concat(name=name, kind="concat", inputs=xs))

    def rows(self, name: str, *xs: str) -> str:
        """Rows (tokens) of several tensors."""
        return self.put(Concat(name=name, kind="concat", inputs=xs, axis="rows"))

    def channels(self, name: str, x: str, start: int, stop: int) -> str:
        """Some of the channels."""
        return self.put(Slice(name=name, kind="slice", inputs=(x,), start=start, stop=stop))

    def max_pool(
        self,
        name: str,
        x: str,
        kernel: int,
        stride: int,
        *,
        padding: int = 0,
        partial: bool = False,
    ) -> str:
        """The largest element under a square window."""
        return self.put(
            MaxPool(
                name=name, kind="max-pool", inputs=(x,), kernel=(kernel, kernel),
                stride=(stride, stride), padding=(padding,) * 4, partial=partial,
            )
        )  # fmt: skip

    def shuffle(self, name: str, x: str, factor: int) -> str:
        """Channels to places."""
        return self.put(PixelShuffle(name=name, kind="pixel-shuffle", inputs=(x,), factor=factor))

    def unshuffle(self, name: str, x: str, factor: int) -> str:
        """Places to channels."""
        return self.put(
            PixelUnshuffle(name=name, kind="pixel-unshuffle", inputs=(x,), factor=factor)
        )

    def average_pool(self, name: str, x: str, size: int) -> str:
        """The mean under square windows that do not overlap."""
        return self.put(
            AveragePool(name=name, kind="average-pool", inputs=(x,), kernel=(size, size))
        )

    def global_pool(self, name: str, x: str, *, role: str | None = None) -> str:
        """The mean of each channel."""
        return self.put(
            GlobalAveragePool(name=name, kind="global-average-pool", inputs=(x,), role=role)
        )

    def resize(self, name: str, x: str, rows: int, columns: int) -> str:
        """Bilinear interpolation."""
        return self.put(
            Upsample(
                name=name, kind="upsample", inputs=(x,), size=(rows, columns),
                interpolation="bilinear",
            )
        )  # fmt: skip

    def squeeze_excite(self, name: str, x: str, narrow: int, wide: int, function: str) -> str:
        """A factor for each channel: mean, two 1 x 1 convolutions with biases, a squashing."""
        x = self.global_pool(f"{name}.pool", x)
        x = self.conv(f"{name}.squeeze", x, narrow, 1, bias=True, role="squeeze-excite")
        x = self.act(f"{name}.relu", x, "relu")
        x = self.conv(f"{name}.excite", x, wide, 1, bias=True, role="squeeze-excite")
        return self.act(f"{name}.factor", x, function)

    def stem(self, channels: int, function: str | None = None) -> str:
        """ResNet's beginning: 7 x 7 convolution and 3 x 3 max-pool, each of stride 2."""
        x = self.conv_bn("conv1", INPUT, channels, 7, stride=2)
        if function is not None:
            x = self.act("conv1.act", x, function)
        return self.max_pool("maxpool", x, 3, 2, padding=1)

    def classifier(self, x: str, classes: int) -> str:
        """ResNet's end: the mean of each channel and one fully connected layer."""
        return self.linear("fc", self.global_pool("avgpool", x), classes)
