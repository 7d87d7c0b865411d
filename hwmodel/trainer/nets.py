"""A network put together from its layers' descriptions for one method and one size of image."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwmodel.errors import ShapeError
from hwmodel.specs.trace import LayerShape, two_complement_bits
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
from hwmodel.trainer.specs import (
    ActivationSpec,
    AddSpec,
    ConvSpec,
    LinearSpec,
    MethodSpec,
    NetworkSpec,
    PoolSpec,
)
from hwmodel.trainer.weights import Reals
from hwmodel.trainer.windows import Window

__all__ = ["Net", "Node", "Site", "build", "logits_signal"]

IMAGE = ""  # the name of the network's input


class Site(NamedTuple):
    """What is known of a tensor between layers.

    Attributes:
        shape: without the batch: (rows, columns, channels) or (features,).
        spread: variance that the values are expected to have, m of the re-weighting.
        kind: truth values, integers or real numbers.
    """

    shape: tuple[int, ...]
    spread: float = 1.0
    kind: str = "real"


class Node(NamedTuple):
    """A layer in its place: what it is called, what it takes, what it gives."""

    name: str
    layer: Layer
    inputs: tuple[str, ...]
    out: Site
    shape: LayerShape | None = None  # of layers that compute sums


class Net:
    """Layers in order, each taking outputs of earlier ones; the last gives the logits."""

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes
        self.values: dict[str, Any] = {}
        self.signals: dict[str, Reals] = {}
        self.sent: dict[str, Reals] = {}

    def forward(self, images: Reals, *, training: bool = False) -> Reals:
        """Logits [batch, classes]; what every layer gave stands in `values`."""
        values: dict[str, Any] = {IMAGE: images}
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

        `signals` then holds what each layer received and `sent` what it sent upstream.
        """
        signals, self.sent = {self.nodes[-1].name: z}, {}
        for node in reversed(self.nodes):
            sent = self.sent[node.name] = node.layer.backward(signals[node.name])
            for name in node.inputs:
                signals[name] = signals[name] + sent if name in signals else sent
        self.signals = signals


class _Plan(NamedTuple):
    """What every layer's construction may look at."""

    method: MethodSpec
    batch: int
    sites: dict[str, Site]
    pooled: frozenset[str]  # layers whose output a pool takes
    where: str

    @property
    def rules(self) -> Rules:
        return Rules(self.method.logic, self.method.signal, self.method.bias)


def build(
    spec: NetworkSpec, method: MethodSpec, image: tuple[int, ...], classes: int, batch: int,
    seed: int,
) -> Net:  # fmt: skip
    """A network with freshly drawn weights.

    Args:
        spec: its layers.
        method: how they are represented and trained.
        image: (rows, columns, channels).
        classes: outputs that the last layer must have.
        batch: images a step, for the extents of the trace.
        seed: every layer draws from a stream of its own, given by this and its place.

    Raises: ShapeError where a layer cannot take what it is given.
    """
    nodes: list[Node] = []
    sites = {IMAGE: Site(image)}
    above = (IMAGE, *(layer.name for layer in spec.layers))
    sources = [x.input or before for before, x in zip(above, spec.layers, strict=False)]
    pooled = frozenset(
        source for source, x in zip(sources, spec.layers, strict=True) if x.kind == "pool"
    )
    plan = _Plan(method, batch, sites, pooled, f"network {spec.name}")
    for index, (layer, source) in enumerate(zip(spec.layers, sources, strict=True)):
        rng = np.random.default_rng([seed, index])
        for node in _nodes(layer, source, plan, rng):
            nodes.append(node)
            sites[node.name] = node.out
    if nodes[-1].out.shape != (classes,):
        raise ShapeError(
            f"network {spec.name}: {nodes[-1].name} gives {_show(nodes[-1].out.shape)} outputs, "
            f"the data has {classes} classes"
        )
    return Net(nodes)


def _nodes(layer: Any, source: str, plan: _Plan, rng: np.random.Generator) -> list[Node]:
    match layer:
        case ConvSpec():
            return [_conv(layer, source, plan, rng)]
        case LinearSpec():
            return [_linear(layer, source, plan, rng)]
        case PoolSpec():
            return [_pool(layer, source, plan)]
        case ActivationSpec():
            return _activation(layer, source, plan)
        case AddSpec():
            return [_add(layer, source, plan)]
        case _:
            raise TypeError(f"no layer is built from {layer!r}")


def _conv(layer: ConvSpec, source: str, plan: _Plan, rng: np.random.Generator) -> Node:
    site = plan.sites[source]
    rows, columns, channels = _image(layer.name, site, plan)
    window = Window(layer.kernel, layer.stride, layer.padding)
    out = (window.outputs(rows), window.outputs(columns))
    if min(out) < 1:
        raise ShapeError(
            f"{plan.where}: {layer.name} has a window of {layer.kernel} x {layer.kernel}, "
            f"its input with padding is {rows + 2 * layer.padding} x {columns + 2 * layer.padding}"
        )
    weights = plan.method.weights if layer.precision == "method" else "real"
    made: Layer
    if weights == "boolean":
        scale = conv_scale(layer.outputs, layer.kernel, layer.stride, layer.name in plan.pooled)
        made = BoolConv(
            channels, layer.outputs, window, rng, plan.rules,
            scale if plan.method.scaling else 1.0, layer.outside,
        )  # fmt: skip
    else:
        made = real.Conv(channels, layer.outputs, window, rng, binary=weights == "binary")
    extents = dict(M=layer.outputs, C=channels, HO=out[0], WO=out[1], HF=layer.kernel)
    return _summing(layer, source, made, weights, extents, plan)


def _linear(layer: LinearSpec, source: str, plan: _Plan, rng: np.random.Generator) -> Node:
    inputs = math.prod(plan.sites[source].shape)
    weights = plan.method.weights if layer.precision == "method" else "real"
    made: Layer
    if weights == "boolean":
        scale = linear_scale(layer.outputs) if plan.method.scaling else 1.0
        made = BoolLinear(inputs, layer.outputs, rng, plan.rules, scale)
    else:
        made = real.Linear(inputs, layer.outputs, rng, binary=weights == "binary")
    extents = dict(M=layer.outputs, C=inputs, HO=1, WO=1, HF=1)
    return _summing(layer, source, made, weights, extents, plan)


def _summing(
    layer: ConvSpec | LinearSpec, source: str, made: Layer, weights: Any, extents: dict[str, int],
    plan: _Plan,
) -> Node:  # fmt: skip
    """The node of a layer with weights: its extents, and what its sums are."""
    integer = weights != "real" and plan.sites[source].kind == "truth"
    fan_in = extents["C"] * extents["HF"] ** 2 + (weights == "boolean" and plan.method.bias)
    parameters = sum(w.votes.size for w in made.boolean) + sum(w.value.size for w in made.real)
    shape = LayerShape(
        name=layer.name, kind=layer.kind, weights=weights, N=plan.batch, WF=extents["HF"],
        stride=getattr(layer, "stride", 1), padding=getattr(layer, "padding", 0), fan_in=fan_in,
        parameters=parameters,
        worst_accumulator_bits=two_complement_bits(-fan_in, fan_in) if integer else None,
        **extents,
    )  # fmt: skip
    image = (extents["HO"], extents["WO"]) if layer.kind == "conv" else ()
    kind, spread = ("integer", fan_in) if integer else ("real", 1.0)
    return Node(layer.name, made, (source,), Site((*image, extents["M"]), spread, kind), shape)


def _pool(layer: PoolSpec, source: str, plan: _Plan) -> Node:
    site = plan.sites[source]
    rows, columns, channels = _image(layer.name, site, plan)
    if min(rows, columns) < 2:
        raise ShapeError(
            f"{plan.where}: {layer.name} pools 2 x 2 pixels, its input has {rows} x {columns}"
        )
    out = site._replace(shape=(rows // 2, columns // 2, channels))
    return Node(layer.name, real.MaxPool(), (source,), out)


def _activation(layer: ActivationSpec, source: str, plan: _Plan) -> list[Node]:
    """The method's activation; where it normalises, a batch norm before it, of variance 1."""
    site = plan.sites[source]
    nodes = []
    if plan.method.batch_norm:
        site = Site(site.shape)
        name = f"{layer.name} norm"  # with a blank, which no name in a file has
        nodes = [Node(name, real.BatchNorm(site.shape[-1]), (source,), site)]
        source = nodes[0].name
    made: Layer
    match plan.method.activation:
        case "threshold":
            made = Threshold(window_slope(site.spread) if plan.method.reweighting else None)
        case "sign":
            made = real.SignThrough()
        case "relu":
            made = real.Relu()
    kind = "real" if plan.method.activation == "relu" else "truth"
    return [*nodes, Node(layer.name, made, (source,), Site(site.shape, 1.0, kind))]


def _add(layer: AddSpec, source: str, plan: _Plan) -> Node:
    """The sum of two branches; independent, so their variances add up."""
    a, b = plan.sites[source], plan.sites[layer.second]
    if a.shape != b.shape:
        raise ShapeError(
            f"{plan.where}: {layer.name} adds {source} of {_show(a.shape)} "
            f"and {layer.second} of {_show(b.shape)}"
        )
    integer = a.kind == b.kind == "integer"
    fan_in = round(a.spread + b.spread) if integer else 2
    rows, columns, channels = a.shape if len(a.shape) == 3 else (1, 1, *a.shape)
    shape = LayerShape(
        name=layer.name, kind="add", weights="none", N=plan.batch, M=channels, C=channels,
        HO=rows, WO=columns, HF=1, WF=1, stride=1, padding=0, fan_in=fan_in, parameters=0,
        worst_accumulator_bits=two_complement_bits(-fan_in, fan_in) if integer else None,
    )  # fmt: skip
    out = Site(a.shape, a.spread + b.spread, "integer" if integer else "real")
    return Node(layer.name, real.Add(), (source, layer.second), out, shape)


def _image(name: str, site: Site, plan: _Plan) -> tuple[int, int, int]:
    if len(site.shape) != 3:
        raise ShapeError(f"{plan.where}: {name} takes images, its input is {_show(site.shape)}")
    rows, columns, channels = site.shape
    return rows, columns, channels


def _show(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))


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
