"""The cache of a generation: its width, and what of a ledger is weights, cache, maps, scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import prod
from typing import Any, NamedTuple

from hwmodel.errors import HwmodelError
from hwmodel.graph.attended import past, scores_by_layer
from hwmodel.graph.generation import state_columns
from hwmodel.graph.layers import AttentionContext, AttentionScores
from hwmodel.graph.layers.scan import Scan
from hwmodel.graph.node import Node
from hwmodel.model.ledger import Component, Entry, Part
from hwmodel.model.prices import Key
from hwmodel.model.workload import At, Task
from hwmodel.work.tensor import Direction, Factor, Pass, Role, Tensor
from hwmodel.work.work import Move, Multiply, Operate

__all__ = ["PARTS", "CacheWidth", "Counts", "Places", "narrowed", "states"]

PARTS = ("weights", "cache", "maps", "scores", "compute")
STATIC = "static"  # of chips with cycles by which it is paid, one more
SCALE_BITS = 16  # of the factor that a group of elements shares [bit]
_VIEWS = frozenset({"expand", "reshape", "slice"})
FORWARD = Pass.FORWARD
READ, WRITE, OPERATE = Direction.READ, Direction.WRITE, Direction.OPERATE
Counts = dict[tuple[str, Key], Fraction]  # by part and price


class CacheWidth(NamedTuple):
    """Bits of an element in the cache, and how many share a scale of 16 bit; None: no scales."""

    bits: int
    group: int | None = None

    @classmethod
    def of(cls, said: str | int) -> CacheWidth:
        """Read "8" or "8/128". Raises: HwmodelError."""
        bits, slash, group = str(said).partition("/")
        numbers = [bits, *([group] if slash else [])]
        if not all(word.isascii() and word.isdigit() and int(word) > 0 for word in numbers):
            raise HwmodelError(
                f"cache-bits {str(said)!r}: bits of an element, as 8, or bits and the elements "
                "that share a scale of 16 bit, as 8/128"
            )
        return cls(*map(int, numbers))

    @property
    def scales(self) -> Fraction:
        """Bits of scales for each bit of elements."""
        return Fraction(SCALE_BITS, self.group * self.bits) if self.group else Fraction(0)

    def __str__(self) -> str:
        return f"{self.bits}/{self.group}" if self.group else str(self.bits)


class Places:
    """Where weights, cache, maps and scores are in the ledger of a network.

    Args:
        outermost: names of the memories in which a cache lies.
        copied: whether the cache is a narrower copy, which is written beside the maps.
    """

    def __init__(self, nodes: Sequence[Node], outermost: Sequence[str], copied: bool) -> None:
        self.outermost, self.copied = frozenset(outermost), copied
        self.scores = {name for name in scores_by_layer(nodes)}
        self.attention = {n.layer.name: n for n in nodes if _attends(n)}
        self.states = {node.layer.name for node in nodes if isinstance(node.layer, Scan)}
        self.states |= {node.layer.name for node in nodes if state_columns(node.layer)}
        self.changing = self.scores | set(self.attention)  # with the number of keys
        self.kept: dict[str, Fraction] = {}  # of what a layer gives, the share that is kept
        known = {node.layer.name: node for node in nodes}
        for node in self.attention.values():
            name = node.inputs[1]
            while name in known and known[name].layer.kind in _VIEWS:
                name = known[name].inputs[0]
            if name in known:
                share = Fraction(prod(node.input_shapes[1]), prod(known[name].output_shape))
                self.kept[name] = min(self.kept.get(name, Fraction(0)) + share, Fraction(1))

    def parts(self, entry: Entry) -> Iterator[tuple[str, Fraction]]:
        """Yield the part that an entry belongs to, or two with their shares."""
        if entry.direction == OPERATE:
            yield STATIC if entry.part == Part.STATIC else "compute", Fraction(1)
            return
        part = self._part(entry)
        written = entry.direction == WRITE and entry.memory in self.outermost
        kept = self.kept.get(entry.layer, Fraction(0))
        if part == "maps" and written and kept and entry.tensor[0] == "O" and not self.copied:
            yield "cache", kept
            yield "maps", 1 - kept
        else:
            yield part, Fraction(1)

    def _part(self, entry: Entry) -> str:
        name, letter = entry.layer, entry.tensor[0]
        node = self.attention.get(name)
        if node is not None:
            if letter == "F":
                return "cache"
            scores = "O" if isinstance(node.layer, AttentionScores) else "I"
            return "scores" if letter == scores else "maps"
        if name in self.states and entry.role == Role.CELL:
            return "cache"
        if name in self.scores and entry.component == Component.ELEMENTWISE:
            return "scores"
        return "weights" if letter in "FP" else "maps"


def _attends(node: Node) -> bool:
    return isinstance(node.layer, (AttentionContext, AttentionScores))


def narrowed(
    tasks: Sequence[Task], attention: Mapping[str, Node], width: CacheWidth, batch: int
) -> Iterator[Task]:
    """Yield the work with a cache of this width: a copy of new keys and values, read ever after.

    An element that is written takes a multiply-add to be quantised, one that is read another to be
    expanded, where the product multiplies it.

    Raises: HwmodelError for a width above that of the product's own.
    """
    for task in tasks:
        layer, work, at = task
        node = attention.get(layer)
        if node is None or not isinstance(work, Multiply):
            yield task
            continue
        kept = work.I if work.kernel else work.F
        wide = width.bits * (1 + width.scales)
        if wide > kept.bits:
            with_scales = f" ({float(wide):.6g} bit an element with scales)" if width.group else ""
            raise HwmodelError(
                f"cache-bits {width}{with_scales}: layer {layer} reads keys or values of "
                f"{kept.bits} bit"
            )
        sizes = zip("CL", node.input_shapes[1], strict=False)
        new = (Factor("N", batch), *(Factor(*size) for size in sizes))
        copy = Tensor("F", new, width.bits, role=Role.COPY, second=True)
        lies = At(at.step, ((f"cache:{layer}",),))
        yield Task(layer, Move(FORWARD, WRITE, copy, why="new keys or values, in the cache"), lies)
        yield Task(layer, Operate(FORWARD, "mac", copy, why="to quantise"), at)
        if past(node.layer):
            problem = work.problem
            elements = problem.I_elements if work.kernel else problem.F_elements
            read = replace(copy, shape=(Factor("elements", elements),))
            yield Task(layer, Operate(FORWARD, "mac", read, why="to expand"), at)
            narrow = replace(kept, bits=width.bits)
            if work.kernel:
                both = work.kernel.bits._replace(I=2 * width.bits)
                work = work._replace(I=narrow, kernel=work.kernel._replace(bits=both))
            else:
                work = work._replace(F=narrow)
        yield Task(layer, work, at)


def states(tasks: Sequence[Task], nodes: Sequence[Node], batch: int, begins: bool) -> list[Task]:
    """Return the moves of what state-space layers keep in the place of a cache.

    Of a scan its state, D N elements of each sequence, which a step reads and writes; of the
    convolution before it the K - 1 columns before a token, which a step reads, and one that it
    writes. A prompt writes both once.

    Args:
        tasks: of the same nodes; each move lies at the step of its layer.
        begins: whether a prompt runs, which has nothing before it.
    """
    at = {task.layer: task.at for task in tasks}
    found = []
    for node in nodes:
        layer, (C, *_) = node.layer, node.input_shapes[0]
        columns = state_columns(layer)
        kept, new = (layer.states, layer.states) if isinstance(layer, Scan) else (columns, 1)
        if not kept:
            continue
        bits = next(
            work.tensor.bits if isinstance(work, Move) else work.I.bits
            for name, work, _ in tasks
            if name == layer.name and not isinstance(work, Operate)
        )

        def state(number: int, C: int = C, bits: Any = bits) -> Tensor:
            size = (Factor("N", batch), Factor("D", C), Factor("states", number))
            return Tensor("O", size, bits, Role.CELL)

        lies = At(at[layer.name].step, ((f"state:{layer.name}",),))
        if not begins:
            found.append(Task(layer.name, Move(FORWARD, READ, state(kept), why="before"), lies))
        written = state(kept if begins else new)
        found.append(Task(layer.name, Move(FORWARD, WRITE, written, why="for the next"), lies))
    return found
