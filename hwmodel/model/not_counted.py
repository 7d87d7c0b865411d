"""What a report leaves out, in shares of the network's parameters, products and elements.

A share of elements alone misleads: an operator without a model can hold most of the weights and
give the fewest elements. So parameters come first, then multiply-accumulates, then elements.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import prod

from hwmodel.errors import HwmodelError, ShapeError, SpecWarning, many
from hwmodel.graph.network import Network
from hwmodel.graph.node import Node
from hwmodel.model.duration import untimed
from hwmodel.model.widths import Edge
from hwmodel.model.workload import Mode
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import load
from hwmodel.specs.hardware import Hardware
from hwmodel.work.problem import Widths
from hwmodel.work.tensor import Pass

__all__ = [
    "not_counted",
    "of_accounting",
    "of_zeros",
    "on_chips",
    "refuse_unknown",
    "see_counted",
    "tell_lanes",
    "tell_unmodelled",
]

_COUNTED = {"control": "cycles of arrays", "interconnect": "hops"}  # of such a part, by some chips
_OF_UPDATE = ("the weight update", "latent weights", "optimizer state")  # parts of such a list
VIEWS = ("expand", "reshape", "slice", "source")  # nothing moves forward: no cost to leave out


def not_counted(network: Network, accounting: Accounting, mode: Mode) -> tuple[str, ...]:
    """List what the report leaves out: layers without a model, and the accounting's own list.

    Operators that own parameters come first, those with the most before the others.
    """
    streamed = accounting.extras.elementwise != "preactivation-words"
    nodes = network.nodes()
    left: dict[tuple[bool, str], list[Node]] = {}
    for node in nodes:
        layer = node.layer
        unknown = layer.kind == "uncounted"
        moves = streamed and not unknown
        if not (moves or layer.kind in VIEWS or layer.loops(node.input_shapes, 1)):
            left.setdefault((unknown, _word(node)), []).append(node)
    ordered = sorted(left.items(), key=lambda item: _rank(item[0][0], item[1]))
    layers = [_line(word, unknown, found, nodes) for (unknown, word), found in ordered]
    signals = _signals_left_out(nodes, streamed) if mode == "training" else ()
    return (*layers, *signals, *_stated(accounting, mode))


def of_accounting(accounting: Accounting, mode: Mode) -> tuple[str, ...]:
    """List what an accounting leaves out of every network."""
    streamed = accounting.extras.elementwise == "streamed"
    operators = (
        () if streamed else ("operators beside products (hwmodel compare lists them by network)",)
    )
    return (*operators, *_stated(accounting, mode))


def _stated(accounting: Accounting, mode: Mode) -> tuple[str, ...]:
    """List what the accounting's file says."""
    training = accounting.not_counted_in_training if mode == "training" else ()
    stepped, voted = accounting.extras.optimizer != "none", accounting.extras.boolean_update
    if stepped or voted:  # as a file may say that takes over another's list
        left = dict.fromkeys(_OF_UPDATE, "") if stepped else {}
        if not voted:
            left[_OF_UPDATE[0]] = "the update of Boolean weights"
        if not stepped:
            left[_OF_UPDATE[0]] = "the update of weights by an optimizer"
        each = ([left.get(x, x) for x in line.split(", ")] for line in training)
        lines = (", ".join(filter(None, parts)) for parts in each)
        training = tuple(filter(None, lines))
    return (*accounting.not_counted, *_differing(accounting), *training)


def on_chips(
    items: Iterable[str], chips: Sequence[Hardware], accounting: Accounting
) -> Iterator[str]:
    """Yield what is left out on some chips: of an accounting's list, what they do not state.

    What is so of some of them alone names those.
    """
    if accounting.counting.counting == "paper":
        yield from items
        return
    alone = [x.name for x in chips if x.static_watts and not untimed(x)]
    stated = {
        "interconnect": [x.name for x in chips if any(level.hop_energy for level in x.levels)],
        "control": [x.name for x in chips if x.array and x.array.cycle_energy],
        "static energy": [x.name for x in chips if x.array and x.static_energy],
    }  # the last two are paid by cycles of arrays
    for item in items:
        parts = [
            _left(part, stated.get(part, []), len(chips), alone if part == "static energy" else [])
            for part in item.split(", ")
        ]
        if left := ", ".join(filter(None, parts)):
            yield left
    names = [x.name for x in chips if x.array is None]
    if names:
        of = f" ({', '.join(names)})" if len(names) < len(chips) else ""
        yield f"innermost reads: unlimited broadcast, for the chip states no array{of}"


def _left(part: str, stated: Sequence[str], chips: int, timed: Sequence[str]) -> str:
    """What is left of a part of a list that some chips count, or count something of; "" for none.

    Args:
        chips: how many there are.
        timed: chips that have it beside times.

    >>> _left("control", ["a"], 1, []), _left("control", ["a"], 2, [])
    ('control beyond cycles of arrays', 'control (of a beyond cycles of arrays)')
    >>> _left("static energy", ["a"], 2, ["a", "b"]), _left("static energy", [], 1, ["a"])
    ('static energy (but of a; of b beside times alone)', 'static energy (beside times alone)')
    """
    names, what = ", ".join(stated), _COUNTED.get(part, "")
    if stated and what:
        some = f" (of {names} beyond {what})"
        return f"{part} beyond {what}" if len(stated) == chips else f"{part}{some}"
    if len(stated) == chips:
        return ""
    beside = [name for name in timed if name not in stated]
    of = f"of {', '.join(beside)} " if len(beside) < chips else ""
    said = [
        *([f"but of {names}"] if stated else []),
        *([f"{of}beside times alone"] if beside else []),
    ]
    return f"{part} ({'; '.join(said)})" if said else part


def of_zeros(network: Network, edges: Iterable[Edge], chip: Hardware) -> Iterator[str]:
    """Say what is not saved of zeros in maps: for want of a share, of a chip that saves, of both.

    Args:
        edges: every tensor of the run.
    """
    codes = {
        f"{b.name} ({b.coding.word_bits} bit)" for x in chip.levels for b in x.buffers if b.coding
    }
    saves = [f"codes them in {name}" for name in sorted(codes)]
    saves += ["gates products by them"] * (chip.zeros != "none")
    known = [edge for edge in edges if edge.nonzero < 1]
    if saves and not (network.zeros or known):
        yield f"zeros of maps: the chip {' and '.join(saves)}, and nobody states a share of them"
    elif network.zeros and not saves:
        yield "zeros of maps: shares are stated, and the chip neither codes nor gates"
    elif codes and known:
        yield (
            "a choice of tiles that knows of coded maps: tiles are the best of plain words; words "
            "of other widths than a code's are plain"
        )


def tell_lanes(chip: Hardware, widths: Iterable[Widths]) -> None:
    """Warn where operands are narrower than every MAC of an array that does not let them share."""
    if chip.array is None or chip.array.operand_bits is not None:
        return
    narrowest = min(
        price.bits for price in chip.arithmetic if price.operation in ("mac", "int-mac")
    )
    widest = [max(bits.I, bits.F) for bits in widths]
    if widest and min(widest) < narrowest:
        warnings.warn(
            f"hardware {chip.name}: array states no operand_bits, so operands of {min(widest)} bit "
            f"take a lane each, as those of {narrowest} bit do",
            SpecWarning, stacklevel=2,
        )  # fmt: skip


def _differing(accounting: Accounting) -> Iterator[str]:
    """Say in which choices of work an accounting differs from the one whose list it takes over."""
    if accounting.based_on is None:
        return
    base = load(Accounting, accounting.based_on)
    if (accounting.not_counted, accounting.not_counted_in_training) != (
        base.not_counted,
        base.not_counted_in_training,
    ):
        return  # it has a list of its own
    moved = [
        f"{field} {value} instead of {getattr(base.extras, field)}"
        for field, value in accounting.extras
        if value != getattr(base.extras, field)
    ]
    if moved:
        yield f"what {accounting.name} counts otherwise than {base.name}, whose list this is: " + (
            ", ".join(moved)
        )


def tell_unmodelled(network: Network) -> None:
    """Warn of operators without a model that own parameters or are known to multiply."""
    nodes = network.nodes()
    found = [n for n in nodes if n.layer.kind == "uncounted" and (_own(n) or _products(n))]
    if found:
        words = ", ".join(dict.fromkeys(map(_word, found)))
        shares = f"{_parameters(found, nodes)} and {_macs(found, nodes)}"
        warnings.warn(
            f"{network.name}: not counted, for there is no model of {words}: {shares}",
            SpecWarning, stacklevel=2,
        )  # fmt: skip


def see_counted(network: Network, accounting: Accounting, passes: Iterable[Pass]) -> None:
    """See that anything of a network's forward pass is counted. Raises: HwmodelError."""
    if not any(pass_ == Pass.FORWARD for pass_ in passes):
        raise HwmodelError(
            f"{network.name}: nothing of its forward pass is counted under accounting "
            f"{accounting.name}: it has no product, and its other layers have no model or are "
            "left out"
        )


def refuse_unknown(network: Network) -> None:
    """See that every operator of the network has a model. Raises: ShapeError."""
    unknown = [layer for layer in network.layers if layer.kind == "uncounted"]
    if unknown:
        first = unknown[0]
        raise ShapeError(
            f"{network.name}: layer {first.name} is the operator {first.operator!r}, which has no "
            f"model ({many(len(unknown), 'such layer')}); without --strict it is listed as not "
            "counted"
        )


def _word(node: Node) -> str:
    """Return what a layer is called in the list: its operator, or its kind."""
    return node.layer.operator if node.layer.kind == "uncounted" else node.layer.kind


def _rank(unknown: bool, found: Sequence[Node]) -> tuple[int, int]:
    """Give the place in the list: operators without a model first, those with weights before."""
    parameters = sum(_own(node) for node in found)
    return (0 if parameters else 1, -parameters) if unknown else (2, 0)


def _line(word: str, unknown: bool, found: Sequence[Node], nodes: Sequence[Node]) -> str:
    """Say how much of the network layers of one kind are."""
    elements = _of("output element", found, nodes, lambda node: prod(node.output_shape))
    word = f"{word}, an operator without a model" if unknown else word
    shares = f"{_parameters(found, nodes)}, {_macs(found, nodes)}, {elements} an image"
    return f"{word}: {many(len(found), 'layer')}, {shares}"


def _parameters(found: Sequence[Node], nodes: Sequence[Node]) -> str:
    return _of("parameter", found, nodes, _own)


def _macs(found: Sequence[Node], nodes: Sequence[Node]) -> str:
    """Say the share of multiply-accumulates, as far as they are known."""
    unknown = sum(_products(node) is None for node in found)
    if unknown == len(found):
        return "unknown multiply-accumulates"
    known = _of("multiply-accumulate", found, nodes, lambda node: _products(node) or 0)
    return f"at least {known}" if unknown else known


def _own(node: Node) -> int:
    return node.weights + node.other_parameters


def _products(node: Node) -> int | None:
    """Return the multiply-accumulates of products; None where they are not known."""
    return node.layer.known_macs if node.layer.kind == "uncounted" else node.macs


def _of(
    what: str, found: Sequence[Node], nodes: Sequence[Node], count: Callable[[Node], int]
) -> str:
    """Say a sum over some layers and its share of that over all of them."""
    some, whole = sum(map(count, found)), sum(map(count, nodes))
    if not some:
        return f"no {what}s"
    return f"{many(some, what)} ({100 * some / whole:.1f} % of all)"


def _signals_left_out(nodes: Sequence[Node], streamed: bool) -> Iterator[str]:
    """Name the signals and gradients between layers that are not counted."""
    left = {"zeros in the signals of tensors that slices take only a part of": _cut(nodes)}
    if not streamed:
        left |= _sums_left_out(nodes)
    for what, found in left.items():
        if found:
            yield f"{what}: {many(len(found), 'tensor')}"


def _sums_left_out(nodes: Sequence[Node]) -> dict[str, list[Node]]:
    """Find signals and gradients that are added up, uncounted where nothing is streamed."""
    return {
        "adding up the signals of tensors that several layers take": [
            n for n in nodes if n.learns and max(n.taken) > 1
        ],
        "adding up the signals of tensors that are repeated": [
            n for n in nodes if n.learns and n.layer.kind == "expand"
        ],
        "adding up the gradients of weights that several layers share": [
            n for n in nodes if n.layer.shares and n.layer.learned is True
        ],
        "summing the gradients of learned constants over the images": [
            n for n in nodes if n.layer.kind == "source" and n.learned_parameters
        ],
    }


def _cut(nodes: Sequence[Node]) -> list[Node]:
    """Find layers of whose output slices take only a part."""
    return [n for n in nodes if n.learns and n.consumers and n.taken[0]]
