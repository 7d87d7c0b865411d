"""What a user may write down: a network as a flat list of layers, and a method's choices."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from hwmodel.errors import NameUnknown, SpecError, nearest
from hwmodel.specs.files import (
    Flag,
    Name,
    NamedSpec,
    Number,
    SpecModel,
    Whole,
    bundled,
    is_path,
    read_yaml,
    validate,
)
from hwmodel.specs.mistakes import Contradiction

__all__ = ["ActivationSpec", "AddSpec", "ConvSpec", "LayerSpec", "LinearSpec", "MethodSpec"]
__all__ += ["NetworkSpec", "PoolSpec", "network_spec"]

Extent = Annotated[Whole, Field(ge=1, le=2**16)]
Precision = Annotated[
    Literal["method", "full"],
    Field(description="'method': weights as the training method has them; 'full': real weights"),
]


class _LayerSpec(SpecModel):
    name: Name = Field(description="unique in the file; what traces and messages call the layer")
    input: Name | None = Field(
        default=None, description="layer whose output this one takes; default: the one above"
    )


class ConvSpec(_LayerSpec):
    """A square convolution."""

    kind: Literal["conv"]
    outputs: Extent = Field(description="channels of the output")
    kernel: Extent = Field(description="rows and columns of the window")
    stride: Extent = 1
    padding: Annotated[Whole, Field(ge=0, le=2**10)] = 0
    outside: Literal["nothing", "true", "false"] = Field(
        default="nothing", description="what Boolean inputs are outside the image"
    )
    precision: Precision = "method"


class LinearSpec(_LayerSpec):
    """A fully connected layer; an image is taken as one row."""

    kind: Literal["linear"]
    outputs: Extent = Field(description="neurons")
    precision: Precision = "method"


class PoolSpec(_LayerSpec):
    """A 2 x 2 max-pool."""

    kind: Literal["pool"]


class ActivationSpec(_LayerSpec):
    """The method's activation, after its batch norm where it has one."""

    kind: Literal["activation"]


class AddSpec(_LayerSpec):
    """The sum of this layer's input and a second one, as in a shortcut."""

    kind: Literal["add"]
    second: Name = Field(description="the other layer whose output is added")


LayerSpec = Annotated[
    ConvSpec | LinearSpec | PoolSpec | ActivationSpec | AddSpec, Field(discriminator="kind")
]


class NetworkSpec(NamedSpec):
    """A network for the trainer: its layers from input to output, one line each."""

    KIND: ClassVar[str] = "trainer network"
    FOLDER: ClassVar[str] = "trainer/networks"

    epochs: Annotated[Whole, Field(ge=1, le=10**5)] = Field(description="unless asked otherwise")
    batch: Annotated[Whole, Field(ge=1, le=2**16)] = Field(description="images a step")
    layers: tuple[LayerSpec, ...] = Field(min_length=1, max_length=1000)


class MethodSpec(NamedSpec):
    """How weights and activations are represented and trained."""

    KIND: ClassVar[str] = "training method"
    FOLDER: ClassVar[str] = "trainer/methods"

    weights: Literal["boolean", "binary", "real"] = Field(
        description="flipped bits, signs of latent real weights, or real weights"
    )
    activation: Literal["threshold", "sign", "relu"]
    batch_norm: Flag
    learning_rate: Annotated[Number, Field(gt=0)] = Field(
        description="of the Boolean optimizer where weights are boolean, of Adam otherwise"
    )
    adam_rate: Annotated[Number, Field(gt=0)] = Field(
        default=1e-3, description="of the real parameters beside Boolean weights"
    )
    reweighting: Flag = Field(default=True, description="tanh' of the pre-activation on signals")
    scaling: Flag = Field(default=True, description="sqrt factors on signals sent upstream")
    signal: Literal["real", "boolean"] = "real"
    logic: Literal["xnor", "xor"] = "xnor"
    bias: Flag = False

    @model_validator(mode="after")
    def _boolean_weights_need_truth_values(self) -> MethodSpec:
        if self.weights == "boolean" and self.activation == "relu":
            raise Contradiction(
                "Boolean weights need Boolean inputs: threshold or sign", "activation"
            )
        return self


def network_spec(what: str | Path | NetworkSpec) -> NetworkSpec:
    """The network behind a bundled name or a path, with its wiring checked.

    Raises: NameUnknown, SpecError with the line of the layer that is wrong.
    """
    if isinstance(what, NetworkSpec):
        return what
    text = os.fspath(what)
    known = bundled(NetworkSpec)
    if not is_path(text) and text not in known:
        raise NameUnknown(NetworkSpec.KIND, text, known)
    path = Path(text) if is_path(text) else known[text]
    values = read_yaml(path)
    spec = validate(NetworkSpec, values, path)
    _check_wiring(spec.layers, values["layers"], path)
    return spec


def _check_wiring(layers: Sequence[Any], marks: Any, path: Path) -> None:
    """Names are unique, inputs stand above, every output is used, the last layer is real."""
    lines = [marks.lc.item(index)[0] + 1 for index in range(len(layers))]
    above: dict[str, str] = {}  # name -> kind
    sources: set[str] = set()
    before = "the image"
    for line, layer in zip(lines, layers, strict=True):
        where = f"{path}:{line}: layers.{layer.name}"
        if layer.name in above:
            raise SpecError(f"{where}: the name is used twice")
        named = [x for x in (layer.input, getattr(layer, "second", None)) if x]
        for name in named:
            if name not in above:
                raise SpecError(
                    f"{where}: no layer above is called {name!r}; {nearest(name, above)}"
                )
        source = layer.input or before
        _check_truth(layer, source, above.get(source), where)
        sources.update([source, *named])
        above[layer.name] = layer.kind
        before = layer.name
    for line, layer in zip(lines[:-1], layers[:-1], strict=True):
        if layer.name not in sources:
            raise SpecError(f"{path}:{line}: layers.{layer.name}: no layer takes its output")
    if layers[-1].kind != "linear" or layers[-1].precision != "full":
        raise SpecError(f"{where}: the last layer is linear with 'precision: full'")


def _check_truth(layer: Any, source: str, kind: str | None, where: str) -> None:
    """A layer that may become Boolean takes truth values, which activations give."""
    if getattr(layer, "precision", "full") == "method" and kind != "activation":
        raise SpecError(
            f"{where}: takes {source}, which is no activation; put one between, "
            "or give this layer 'precision: full'"
        )
