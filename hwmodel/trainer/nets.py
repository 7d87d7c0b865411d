"""A network put together for training: the layers of its stack with freshly drawn weights."""

from __future__ import annotations

from collections import Counter
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwmodel.errors import SpecError
from hwmodel.graph.layers import Conv
from hwmodel.graph.layers import Layer as AnyLayer
from hwmodel.graph.network import INPUT
from hwmodel.graph.node import Node
from hwmodel.specs.limits import Limits
from hwmodel.specs.trace import LayerShape, sum_bits
from hwmodel.specs.training import Recipe
from hwmodel.trainer import real
from hwmodel.trainer.layers import (
    BoolConv,
    BoolLinear,
    Layer,
    Rules,
    Threshold,
    conv_scale,
    linear_scale,
    window_slope,
)
from hwmodel.trainer.pooled import Pooled, dense
from hwmodel.trainer.rounding import Limiter
from hwmodel.trainer.stack import Stack
from hwmodel.trainer.weights import Reals
from hwmodel.trainer.windows import Window

__all__ = ["Net", "Trained", "build", "logits_signal", "scaled"]


class Trained(NamedTuple):
    """A layer in its place: what it is called, what it takes, what the trace says of its sums."""

    name: str
    layer: Layer
    inputs: tuple[str, ...]
    shape: LayerShape | None  # of layers that compute sums


class Net:
    """Layers in order, each taking outputs of earlier ones; the last gives the logits."""

    def __init__(
        self, nodes: list[Trained], limits: Limits | None = None, seed: int = 0,
        recipe: Recipe | None = None,
    ) -> None:  # fmt: skip
        self.nodes = nodes
        self.recipe = recipe or Recipe()
        self.places = {node.name: place for place, node in enumerate(nodes)}
        self.memory = limits.accumulator if limits else None
        self.limiters = _limiters(nodes, limits, seed) if limits else {}
        nodes[0].layer.sends = False
        if limits and limits.signal and limits.signal.rounding != "stochastic":  # draws for all
            _fold(nodes)
        self.values: dict[str, Any] = {}
        self.signals: dict[str, Reals | Pooled] = {}
        self.sent: dict[str, Reals | Pooled] = {}

    def forward(self, images: Reals, *, training: bool = False) -> Reals:
        """Logits [batch, classes]; what every layer gave stands in `values`."""
        values: dict[str, Any] = {INPUT: images}
        for node in self.nodes:
            if isinstance(node.layer, real.BatchNorm):
                node.layer.training = training
            taken = tuple(values[name] for name in node.inputs)
            values[node.name] = node.layer.forward(taken if len(taken) > 1 else taken[0])
        self.values = values
        logits: Reals = values[self.nodes[-1].name]
        return logits

    def backward(self, z: Reals) -> None:
        """From the loss's derivative by the logits to every layer's votes and gradients.

        `signals` then holds what each layer received and `sent` what it sent upstream, both as
        wide as they are limited.
        """
        signals: dict[str, Any] = {self.nodes[-1].name: z}
        self.sent = {}
        for node in reversed(self.nodes):
            received = signals[node.name] = self._limited(f"{node.name}/signal", signals[node.name])
            sent = self._limited(f"{node.name}/sent", node.layer.backward(received))
            self.sent[node.name] = sent
            for name in node.inputs:
                signals[name] = signals[name] + sent if name in signals else sent
            signals.pop(INPUT, None)  # which learns nothing
        self.signals = signals

    def signal(self, name: str) -> Reals:
        """What a layer received in the last backward pass, for every one of its outputs."""
        return dense(self.signals[name])

    def _limited(self, tensor: str, z: Reals | Pooled) -> Reals | Pooled:
        """A tensor as wide as it is limited."""
        limiter = self.limiters.get(tensor)
        if limiter is None:
            return z
        if isinstance(z, Pooled):  # the zeros that it leaves out stay zeros
            return z._replace(z=self._rounded(limiter, z.z), exponent=limiter.finest)
        return self._rounded(limiter, z)

    @staticmethod
    def _rounded(limiter: Limiter, z: Reals) -> Reals:
        return limiter(z).astype(np.float32, copy=False)


def _fold(nodes: list[Trained]) -> None:
    """Let pools send signals as small as they come to Boolean convolutions that they alone follow.

    There a signal is rounded to a grid, of which the convolution makes use.
    """
    takers = Counter(name for node in nodes for name in node.inputs)
    boolean = {node.name for node in nodes if isinstance(node.layer, BoolConv)}
    for node in nodes:
        if isinstance(node.layer, real.MaxPool):
            (source,) = node.inputs
            node.layer.folded = source in boolean and takers[source] == 1


def _limiters(nodes: list[Trained], limits: Limits, seed: int) -> dict[str, Limiter]:
    """What rounds the signals of layers that compute sums, and the votes on Boolean weights.

    The first of these layers sends nothing that is read, and the last receives the loss's signal.
    """
    found: dict[str, Limiter] = {}
    layers = [(place, node) for place, node in enumerate(nodes) if node.shape]
    for place, node in layers:
        of = (seed, place)
        if limits.signal and node is not layers[-1][1]:
            found[f"{node.name}/signal"] = Limiter(limits.signal, (*of, 0))
        if limits.signal and node is not layers[0][1]:
            found[f"{node.name}/sent"] = Limiter(limits.signal, (*of, 1))
        if limits.vote and node.layer.boolean:
            found[f"{node.name}/vote"] = Limiter(limits.vote, (*of, 2))
    return found


def build(stack: Stack, recipe: Recipe, batch: int, seed: int, limits: Limits | None = None) -> Net:
    """A network with freshly drawn weights.

    Args:
        stack: its layers.
        recipe: how signals are treated on their way back.
        batch: images a step, for the extents of the trace.
        seed: every layer draws from a stream of its own, given by this and its place; batch norms
            draw nothing and are not counted, so that a network draws alike with and without them.
        limits: widths of signals, votes and accumulators.
    """
    bits = limits.signal.bits if limits and limits.signal else None
    if bits and recipe.signal == "boolean":
        raise SpecError("signal: boolean of the recipe, and a width of signals of the method's")
    made: list[Trained] = []
    spread, place = {INPUT: 1.0}, 0
    for node in stack.nodes:
        rng = np.random.default_rng([seed, place])
        place += node.layer.kind != "batch-norm"
        before = [spread[source] for source in node.inputs]
        layer = _layer(node, before[0], stack, recipe, rng, bits)
        name, integer = node.layer.name, stack.values[node.layer.name] == "integer"
        fan_in, spread[name] = _sums(node, before, integer, len(layer.boolean) > 1)
        shape = _shape(node, layer, stack, fan_in, batch) if fan_in else None
        made.append(Trained(name, layer, node.inputs, shape))
    return Net(made, limits, seed, recipe)


def scaled(stack: Stack, recipe: Recipe) -> bool:
    """Whether Boolean layers scale the signals that they send upstream."""
    return stack.flips and (not stack.normalised if recipe.scaling is None else recipe.scaling)


def _layer(
    node: Node, spread: float, stack: Stack, recipe: Recipe, rng: np.random.Generator,
    bits: int | None,
) -> Layer:  # fmt: skip
    """The layer at a node; `spread` is the variance expected of its input, `bits` of signals."""
    if node.macs:
        return _product(node, stack, recipe, rng, bits)
    if node.layer.kind == "activation":
        slope = window_slope(spread) if recipe.reweighting else None
        function = stack.functions[node.layer.name]
        own = Threshold(slope, recipe.tau)
        return own if function == "threshold" else _FUNCTIONS[function]()
    if node.layer.kind == "batch-norm":
        return real.BatchNorm(node.output_shape[0])
    return real.Add() if node.layer.kind == "add" else real.MaxPool()


_FUNCTIONS: dict[str, type[Layer]] = {"sign": real.SignThrough, "relu": real.Relu}


def _product(
    node: Node, stack: Stack, recipe: Recipe, rng: np.random.Generator, bits: int | None
) -> Layer:
    """A convolution or linear layer with weights as the method has them."""
    layer, weights, outs = node.layer, stack.weights[node.layer.name], node.output_shape[0]
    window = _window(layer)
    size = prod(node.input_shapes[0]) if window is None else node.input_shapes[0][0]
    if weights != "boolean":
        own = {"binary": weights == "binary", "bias": node.other_parameters > 0}
        if window is None:
            return real.Linear(size, outs, rng, **own)
        return real.Conv(size, outs, window, rng, **own)
    rules, scale = Rules(recipe.logic, recipe.signal, recipe.bias, bits), 1.0
    if scaled(stack, recipe):
        pooled = any(taker.kind == "max-pool" for taker in node.consumers)
        scale = (
            conv_scale(outs, window.size, window.stride, pooled) if window else linear_scale(outs)
        )
    if window is None:
        return BoolLinear(size, outs, rng, rules, scale)
    return BoolConv(size, outs, window, rng, rules, scale, recipe.outside)


def _window(layer: AnyLayer) -> Window | None:
    """The window of a convolution; None for any other layer."""
    if not isinstance(layer, Conv):
        return None
    return Window(layer.kernel[0], layer.stride[0], layer.padding[0])


def _sums(node: Node, before: list[float], integer: bool, biased: bool) -> tuple[int, float]:
    """Terms of one sum of a layer, 0 where it has none, and the variance expected of its output.

    A sum of m independent values of +1 and -1 has the variance m. Where branches meet, variances
    add up; a pool leaves what it was; anything else is taken to have the variance 1.

    Args:
        before: variances of what it takes.
        integer: whether its terms are +1 and -1.
        biased: whether each of its sums has a Boolean bias, one more term.
    """
    if node.macs:
        terms = node.terms + biased
        return terms, terms if integer else 1.0
    if node.layer.kind == "add":
        spread = sum(before)
        return round(spread) if integer else len(before), spread
    return 0, before[0] if node.layer.kind == "max-pool" else 1.0


def _shape(node: Node, made: Layer, stack: Stack, fan_in: int, batch: int) -> LayerShape:
    """What the trace says of a layer that computes sums."""
    window = _window(node.layer) or Window(1)
    M, HO, WO = node.output_shape
    channels = (
        prod(node.input_shapes[0]) if node.layer.kind == "linear" else node.input_shapes[0][0]
    )
    integer = stack.values[node.layer.name] == "integer"
    return LayerShape(
        name=node.layer.name, kind=node.layer.kind,  # type: ignore[arg-type]
        weights=stack.weights.get(node.layer.name, "none"),
        N=batch, M=M, C=channels, HO=HO, WO=WO, HF=window.size, WF=window.size,
        stride=window.stride, padding=window.padding, fan_in=fan_in,
        parameters=sum(w.votes.size for w in made.boolean) + sum(w.value.size for w in made.real),
        worst_sum_bits=sum_bits(-fan_in, fan_in) if integer else None,
    )  # fmt: skip


def logits_signal(logits: Reals, labels: NDArray[np.int64]) -> tuple[float, Reals]:
    """Cross-entropy of softmax(logits), averaged over the batch [nat], and its derivative."""
    shifted = logits - logits.max(1, keepdims=True)
    exponentials = np.exp(shifted)
    totals = exponentials.sum(1, keepdims=True)
    rows = np.arange(len(labels))
    loss = float(np.mean(np.log(totals[:, 0]) - shifted[rows, labels]))
    z = exponentials / totals
    z[rows, labels] -= 1
    return loss, z / np.float32(len(labels))
