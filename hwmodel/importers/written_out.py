"""Rotary embeddings and repeated keys, which a source writes out as slices, sums and copies.

Once a network is read, the layers of each are found by what they take from each other; a `rotary`
layer stands in the place of the first kind, and nothing in that of the second.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from types import SimpleNamespace
from typing import Any, NamedTuple

from hwmodel.graph.attended import scores_by_layer
from hwmodel.graph.layers import INPUT, Layer, Reshape, Rotary, Shape
from hwmodel.importers.graph import Graph

__all__ = ["recognised_layers"]

_TURNED = frozenset({"add", "concat", "multiply", "slice"})


def recognised_layers(graph: Graph) -> tuple[Layer, ...]:
    """Return the layers of a graph that has been read, with what they write out as one layer."""
    kinds = {layer.kind for layer in graph.layers}
    found = _Layers(graph)
    if kinds >= _TURNED:
        for name in [layer.name for layer in graph.layers if layer.kind == "add"]:
            found.turn(name)
    if "expand" in kinds and kinds & {"attention-scores", "attention-context"}:
        found.share_keys()
    return tuple(found.in_order()) if found.changed else tuple(graph.layers)


class _Turned(NamedTuple):
    """x' sin of a rotary embedding: halves of x change places, one with its sign."""

    base: str  # x
    d: int  # features that are turned together
    tables: tuple[str, ...]  # what it is multiplied by


class _Layers:
    """Layers by name in order, with what each takes and who takes it."""

    def __init__(self, graph: Graph) -> None:
        self.graph, self.changed = graph, False
        self.layers: dict[str, Any] = {layer.name: layer for layer in graph.layers}
        self.inputs = {name: graph.inputs[name] for name in self.layers}
        self.before: dict[str, list[str]] = {}  # layer -> views that stand before it
        self.takers: dict[str, list[str]] = {name: [] for name in (INPUT, *self.layers)}
        for name, taken in self.inputs.items():
            for one in taken:
                self.takers[one].append(name)

    def in_order(self) -> Iterator[Layer]:
        """Yield the layers; `inputs` is left out where it is the layer before."""
        last = INPUT
        first = [layer.name for layer in self.graph.layers]
        for name in [view for one in first for view in (*self.before.get(one, ()), one)]:
            if name not in self.layers:
                continue
            layer, taken = self.layers[name], self.inputs[name]
            stated = None if taken in ((), (last,)) else taken
            yield layer if layer.inputs == stated else layer.model_copy(update={"inputs": stated})
            last = name

    def _through(self, name: str) -> str:
        """The layer of which a tensor is a view."""
        while name in self.layers and self.layers[name].kind == "reshape":
            if self.layers[name].bits is not None:
                break
            name = self.inputs[name][0]
        return name

    def _kind(self, name: str) -> str:
        return self.layers[name].kind if name in self.layers else INPUT

    def _seen(self, name: str, shape: Shape, before: str) -> str:
        """A tensor in a shape, by a view that stands before a layer if need be."""
        name = self._through(name)
        if self.graph.shapes[name] == shape:
            return name
        view = self.graph.unused(f"{name}.view")
        self.layers[view] = Reshape(name=view, kind="reshape", shape=shape)
        self.before.setdefault(before, []).append(view)
        self.graph.shapes[view] = shape
        self.inputs[view], self.takers[view] = (name,), []
        self.takers[name].append(view)
        return view

    def _take(self, name: str, layer: Layer, inputs: Sequence[str]) -> None:
        """Let a layer stand in the place of another; what nobody takes any more goes."""
        old, self.inputs[name] = self.inputs[name], tuple(inputs)
        self.layers[name], self.changed = layer, True
        for one in inputs:
            self.takers[one].append(name)
        for one in old:
            self._leave(one, name)

    def _leave(self, name: str, taker: str) -> None:
        self.takers[name].remove(taker)
        if not self.takers[name] and name in self.layers:
            del self.layers[name]
            for one in self.inputs[name]:
                self._leave(one, name)

    # Rotary embeddings: x cos + x' sin

    def turn(self, name: str) -> None:
        """Make a rotary embedding of a sum, if it is one."""
        terms = [self._through(one) for one in self.inputs[name]]
        if len(terms) != 2:
            return
        for plain, other in (terms, terms[::-1]):
            turned = self._turned(other)
            tables = () if turned is None else self._factors(plain, turned.base)
            if turned is not None and tables is not None:
                self._make_rotary(name, turned, (*tables, *turned.tables))
                return

    def _factors(self, name: str, base: str) -> tuple[str, ...] | None:
        """What a layer multiplies `base` by; none where that is a factor of each channel."""
        if self._kind(name) not in ("multiply", "scale"):
            return None
        taken = list(self.inputs[name])
        through = [self._through(one) for one in taken]
        if base not in through:
            return None
        taken.pop(through.index(base))
        return tuple(taken)

    def _turned(self, name: str) -> _Turned | None:
        if self._kind(name) not in ("multiply", "scale"):
            return None
        for one in map(self._through, self.inputs[name]):
            halves = list(map(self._through, self.inputs.get(one, ())))
            if self._kind(one) != "concat" or len(halves) != 2 or self._kind(halves[0]) != "scale":
                continue
            halves[0] = self._through(self.inputs[halves[0]][0])
            if [self._kind(half) for half in halves] != ["slice", "slice"]:
                continue
            second, first = (self.layers[half] for half in halves)
            place = 0 if first.axis == "channels" else 1
            d = self.graph.shapes[self.inputs[halves[1]][0]][place]
            cuts = (first.start, 2 * first.stop, 2 * second.start, second.stop)
            bases = {self._through(self.inputs[half][0]) for half in halves}
            if first.axis == second.axis and cuts == (0, d, d, d) and len(bases) == 1:
                return _Turned(bases.pop(), d, self._factors(name, one) or ())
        return None

    def _make_rotary(self, name: str, turned: _Turned, tables: Sequence[str]) -> None:
        """Put a rotary layer; its heads share a table of d features a place."""
        shape = self.graph.shapes[name]
        size = min((prod(self.graph.shapes[one]) for one in tables), default=0)
        if not size or size % turned.d or prod(shape) % size or turned.d % 2:
            return
        heads, places = prod(shape) // size, size // turned.d
        own = (heads * turned.d, places, 1)
        source = self._seen(turned.base, own, name)
        takers = list(self.takers[name])
        self._take(name, Rotary(name=name, kind="rotary", heads=heads), [source])
        self.graph.shapes[name] = own
        for taker in takers if own != shape else ():
            if self._kind(taker) != "reshape":
                self._exchange(taker, name, self._seen(name, shape, taker))
            elif self.graph.shapes[taker] == own:  # a view of what is so already
                for one in list(self.takers[taker]):
                    self._exchange(one, taker, name)

    def _exchange(self, taker: str, old: str, new: str) -> None:
        """Let a layer take another tensor in the place of one."""
        inputs = [new if one == old else one for one in self.inputs[taker]]
        self._take(taker, self.layers[taker], inputs)

    # Keys and values that are repeated for each head of queries

    def share_keys(self) -> None:
        """Let attention take keys and values as they were before they were repeated."""
        placed = [SimpleNamespace(layer=x, inputs=self.inputs[n]) for n, x in self.layers.items()]
        scores = scores_by_layer(placed)
        times = {
            name: self._repeated(name)
            for name, layer in self.layers.items()
            if layer.kind in ("attention-scores", "attention-context")
        }
        for name, layer in list(self.layers.items()):
            of = scores.get(self.inputs[name][0]) if layer.kind == "attention-context" else None
            if of is not None and times[name] != times[of.name]:
                times[name] = times[of.name] = 1
        for name, number in times.items():
            if number > 1:
                self._share(name, number)

    def _repeated(self, name: str) -> int:
        """How often each head of the second operand is repeated; 1 if it is not."""
        layer, copied = self.layers[name], self._through(self.inputs[name][1])
        if self._kind(copied) != "expand" or layer.kv_heads not in (None, layer.heads):
            return 1
        after, before = self.graph.shapes[copied], self.graph.shapes[self.inputs[copied][0]]
        times = after[0] // before[0]
        return times if after[1:] == before[1:] and layer.heads % times == 0 else 1

    def _share(self, name: str, times: int) -> None:
        layer, (first, second) = self.layers[name], self.inputs[name]
        (before,) = self.inputs[self._through(second)]
        C, S, _ = self.graph.shapes[second]
        seen = self._seen(before, (C // times, S, 1), name)
        shared = layer.model_copy(update={"kv_heads": layer.heads // times})
        self._take(name, shared, [first, seen])
