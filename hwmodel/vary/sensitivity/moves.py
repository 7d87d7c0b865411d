"""The moves of a study: each number of a chip and an accounting halved and doubled, each choice
changed to every other one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, product
from typing import NamedTuple, TypeGuard

from hwmodel.errors import SpecError
from hwmodel.vary.paths import Inputs, Leaf, Scalar, changed, leaves, replaced_all

__all__ = ["FACTORS", "Move", "Number", "fields", "is_number", "moves"]

FACTORS = (0.5, 2.0)
Number = int | float
MOST_COMPANIONS = 4  # choices that are changed along with one that is refused alone


class Move(NamedTuple):
    """One change of the inputs, or why it cannot be made."""

    leaf: Leaf  # its path begins with hardware. or accounting.
    value: Scalar
    along: tuple[tuple[Leaf, Scalar], ...] = ()  # choices without which the rules refuse it
    refused: str = ""

    @property
    def changes(self) -> dict[str, Scalar]:
        """New values by path."""
        return {leaf.path: value for leaf, value in ((self.leaf, self.value), *self.along)}

    @property
    def field(self) -> str:
        """The path that moves, and after a plus the paths that move along."""
        return " + ".join(self.changes)

    @property
    def of_number(self) -> bool:
        """Whether a number moves to a number, so that there is something between."""
        return is_number(self.leaf.value) and is_number(self.value) and not self.along


def is_number(value: Scalar) -> TypeGuard[Number]:
    """Whether a value is a number; yes and no are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def fields(inputs: Inputs) -> tuple[Leaf, ...]:
    """List every leaf of the accounting and of the chip, with its path into the inputs."""
    return tuple(
        leaf._replace(path=f"{root}.{leaf.path}", part_of=leaf.part_of and f"{root}.{leaf.part_of}")
        for root, spec in (("accounting", inputs.accounting), ("hardware", inputs.hardware))
        for leaf in leaves(spec)
    )


def moves(inputs: Inputs) -> list[Move]:
    """List every move of every leaf, in their order; moves that rules refuse have the reason."""
    everything = fields(inputs)
    return [move for leaf in everything for move in _moves(inputs, leaf, everything)]


def _scaled(leaf: Leaf, factor: float) -> Number:
    """Multiply a leaf's number; a whole one is rounded down."""
    assert is_number(leaf.value)
    return int(leaf.value * factor) if leaf.whole else leaf.value * factor


def _moves(inputs: Inputs, leaf: Leaf, everything: Sequence[Leaf]) -> Iterator[Move]:
    if is_number(leaf.value) and leaf.value:
        for factor in FACTORS:
            move = Move(leaf, _scaled(leaf, factor))
            yield move._replace(refused=_refusal(inputs, move))
    elif leaf.number:
        what = "0" if leaf.value == 0 else "unlimited" if leaf.unit == "bit" else "not stated"
        what = leaf.value if isinstance(leaf.value, str) else what
        yield Move(leaf, None, refused=f"is {what}: no factor moves it")
    for choice in leaf.choices:
        if choice != leaf.value:
            move = Move(leaf, choice)
            reason = _refusal(inputs, move)
            yield move._replace(refused=reason)
            if reason:
                yield from _accompanied(inputs, move, everything)


def _refusal(inputs: Inputs, move: Move) -> str:
    """Return the reason why the specs' rules refuse a move; "" if they do not."""
    try:
        changed(inputs, move.changes)
    except SpecError as error:
        return str(error)
    return ""


def _accompanied(inputs: Inputs, move: Move, everything: Sequence[Leaf]) -> Iterator[Move]:
    """Yield the move with the fewest other choices that make it allowed, if any do."""
    root = move.leaf.path.partition(".")[0]
    spec = getattr(inputs, root)
    others = [
        leaf
        for leaf in everything
        if leaf.path.startswith(f"{root}.") and leaf != move.leaf and leaf.choices
        and not leaf.number
    ]  # fmt: skip
    for size in range(1, MOST_COMPANIONS + 1):
        for along in combinations(others, size):
            for values in product(*([c for c in x.choices if c != x.value] for x in along)):
                together = move._replace(along=tuple(zip(along, values, strict=True)))
                try:
                    new = {p.partition(".")[2]: v for p, v in together.changes.items()}
                    replaced_all(spec, new)
                except SpecError:
                    continue
                yield together
                return
