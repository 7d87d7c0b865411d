"""LSTM, GRU and RNN of a file, written out into the layers that they are."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, Literal

from pydantic import Field, TypeAdapter, model_validator

from hwmodel.graph.layers import Layer
from hwmodel.graph.layers.base import BaseLayer, Positive
from hwmodel.graph.layers.recurrent import GATES, Cell
from hwmodel.specs.files import Whole

__all__ = ["CELLS", "Recurrent"]

CELLS: tuple[Cell, ...] = tuple(GATES)


@cache
def _layer() -> TypeAdapter[Any]:
    """What makes a layer of its fields; built where one is made, since that takes long."""
    return TypeAdapter(Layer)


class Recurrent(BaseLayer):
    """A recurrent layer: (I, T, 1) give (directions x R, T, 1), R the projection or the features.

    `NAME.input` is the product of all inputs, NAME what goes from step to step; of two directions
    `NAME.0` and `NAME.1`, and NAME puts them side by side.
    """

    kind: Cell
    features: Positive
    directions: Whole = Field(default=1, ge=1, le=2)
    projection: Whole = Field(default=0, ge=0, description="of an LSTM's output; 0: none")
    biases: Whole = Field(
        default=2, ge=0, le=2, description="for each gate: of PyTorch and ONNX 2, of a Keras LSTM 1"
    )
    returns: Literal["sequence", "last"] = "sequence"
    steps: Positive | None = Field(
        default=None, description="T, which has to be said where the last step alone is returned"
    )

    @model_validator(mode="after")
    def _coherent(self) -> Recurrent:
        if self.returns == "last" and self.steps is None:
            raise ValueError("returns last: say how many steps there are")
        if self.projection and (self.kind != "lstm" or self.projection >= self.features):
            raise ValueError("a projection is of an lstm, to fewer features")
        if self.shares or self.bits:
            raise ValueError("shares and bits are not for recurrent layers")
        return self

    def layers(self, before: str) -> Iterator[Layer]:
        """Yield the layers that it stands for; `before` is the one before it.

        A checkpoint is what it gives.
        """
        for layer in self._layers(before):
            kept = self.checkpoint and layer.name == self.name
            yield layer.model_copy(update={"checkpoint": True}) if kept else layer

    def _layers(self, before: str) -> Iterator[Layer]:
        source = (self.inputs or (before,))[0]
        ends = []
        last = self.returns == "last"
        whole = f"{self.name}.all" if last else self.name
        for way in range(self.directions):
            name = f"{self.name}.{way}" if self.directions == 2 else whole
            yield from self._direction(name, source, way)
            ends.append(name)
        if self.directions == 2:
            yield self._made({"name": whole, "kind": "concat", "inputs": ends})
        if last:
            yield self._made(
                {"name": self.name, "kind": "slice", "axis": "rows", "inputs": [whole],
                 "start": (self.steps or 1) - 1, "stop": self.steps}
            )  # fmt: skip

    def _direction(self, name: str, source: str, way: int) -> Iterator[Layer]:
        own = {"role": self.role, "learned": self.learned}
        given, state = f"{name}.input", f"{name}.state" if self.projection else name
        gates = GATES[self.kind] * self.features
        yield self._made(
            {"name": given, "kind": "linear", "features": gates, "over": "channels",
             "inputs": [source], "bias": self.biases > 0, **own}
        )  # fmt: skip
        yield self._made(
            {"name": state, "kind": "recurrence", "cell": self.kind, "features": self.features,
             "projection": self.projection, "bias": self.biases > 1, "inputs": [given],
             "reverse": True if way else None, **own}
        )  # fmt: skip
        if self.projection:
            yield self._made(
                {"name": name, "kind": "step-linear", "features": self.projection,
                 "inputs": [state], **own}
            )  # fmt: skip

    @staticmethod
    def _made(values: dict[str, Any]) -> Layer:
        stated = {key: value for key, value in values.items() if value is not None}
        made: Layer = _layer().validate_python(stated)
        return made
