"""The moves of a study: each number of a chip and an accounting halved and doubled, each choice
changed to every other one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeGuard

from hwmodel.errors import SpecError
from hwmodel.vary.paths import Inputs, Leaf, Scalar, changed, leaves

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
            move = move._replace(refused=_refusal(inputs, move))
            yield move
            if move.refused:
                yield from _accompanied(inputs, move, everything)


def _refusal(inputs: Inputs, move: Move) -> str:
    """Return the reason why the specs' rules refuse a move; "" if they do not."""
    try:
        changed(inputs, move.changes)
    except SpecError as error:
        return str(error)
    return ""


def _accompanied(inputs: Inputs, move: Move, everything: Sequence[Leaf]) -> Iterator[Move]:
    """Yield the move with the fewest other choices that make it allowed, if any do.

    A refusal names the fields or the values that are in each other's way, so only choices that it
    names are changed along; then those that the next refusal names.
    """
    root = move.leaf.path.partition(".")[0]
    others = [
        leaf
        for leaf in everything
        if leaf.path.startswith(f"{root}.") and leaf != move.leaf and leaf.choices
        and not leaf.number
    ]  # fmt: skip
    reasons: dict[tuple[tuple[int, int], ...], str] = {(): move.refused}  # by leaf and choice
    for _ in range(MOST_COMPANIONS):
        longer = {
            tuple(sorted((*along, (which, choice))))
            for along, reason in reasons.items()
            for which in _named(reason, others)
            if which not in dict(along)
            for choice, value in enumerate(others[which].choices)
            if value != others[which].value
        }
        reasons = {}
        for along in sorted(longer):
            new = tuple((others[which], others[which].choices[choice]) for which, choice in along)
            together = move._replace(along=new, refused="")
            reasons[along] = _refusal(inputs, together)
            if not reasons[along]:
                yield together
                return


def _named(reason: str, leaves: Sequence[Leaf]) -> list[int]:
    """List which leaves a refusal names, by the field's name or by its value."""
    words = set(re.findall(r"[\w-]+", reason))
    return [
        which
        for which, leaf in enumerate(leaves)
        if words & {leaf.path.rpartition(".")[2], str(leaf.value)}
    ]
