"""Tensors, and numbers of elements as products of named factors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from math import prod
from typing import NamedTuple

__all__ = ["Direction", "Factor", "Pass", "Role", "Tensor", "product", "titled"]


class Pass(StrEnum):
    """The parts of one training iteration; inference has the first alone."""

    FORWARD = "forward"
    BACKWARD_INPUT = "backward_input"
    BACKWARD_WEIGHT = "backward_weight"
    UPDATE = "update"


class Direction(StrEnum):
    """What has a price: a bit read, written or on its way between memories; an operation."""

    READ = "read"
    WRITE = "write"
    HOP = "hop"  # into one of several memories of a level, or out of it
    OPERATE = "operate"


class Role(StrEnum):
    """The purpose for which a tensor is moved, where its letter does not say it."""

    OPERAND = "operand"
    UNFINISHED = "unfinished sum"  # leaves before its reduction has ended
    DRAINED = "drained sum"  # an unfinished one, read on its way out
    RETURNED = "returned sum"  # comes back to be continued
    SAVED = "saved"  # kept by the forward pass, for the way back needs it again
    KEPT_SUM = "kept sum"  # the sum before a threshold, stored to weigh the signal
    COPY = "copy"  # the narrower words that products read of a wide tensor
    EXTRA = "extra work"  # what a method does beside the graph
    FORK = "fork"  # signals of several takers, added up
    BROADCAST = "broadcast"  # a signal summed over the places to which its tensor was spread
    SHARED = "shared"  # a gradient added to that of the layer which owns the weights
    LOOKED_UP = "looked up"  # rows of a table, once for each time they are used
    LATENT = "latent"  # the full-precision weight behind a narrow one
    MOMENT = "moment"  # what an optimizer remembers of a weight
    VOTE = "vote"  # for or against the flip of a Boolean weight
    ACCUMULATOR = "accumulator"  # votes so far, of a Boolean weight


class Factor(NamedTuple):
    """One factor of a count or of a price: its name, its value, and the source of the value."""

    name: str
    value: float  # whole, but for ratios of the source's table, rates and prices
    why: str = ""


def titled(tensor: str, role: Role) -> str:
    """Name a tensor in a role, for print.

    >>> titled("I", Role.OPERAND), titled("F", Role.ACCUMULATOR)
    ('I', 'F (accumulator)')
    """
    return tensor if role == Role.OPERAND else f"{tensor} ({role})"


def product(factors: tuple[Factor, ...]) -> int:
    """Multiply a count's factors to a whole number.

    >>> product((Factor("N", 8), Factor("C", 64), Factor("flip rate", 0.01)))
    5
    """
    return round(prod(factor.value for factor in factors))


@dataclass(frozen=True)
class Tensor:
    """A tensor as one pass moves it."""

    name: str  # the source's letter: I, F, O and the loss signals dI, dF, dO
    shape: tuple[Factor, ...]  # [elements]
    bits: int  # of one element [bit]
    role: Role = Role.OPERAND
    index: int = 0  # which of several that are alike, from 1; 0 where there is one
    floating: bool = False  # whether words narrower than full precision are floating-point

    def __str__(self) -> str:
        return f"{self.name}{self.index or ''}"

    @property
    def title(self) -> str:
        """Its name, and its role where that is not what the letter says."""
        return titled(str(self), self.role)

    @property
    def elements(self) -> int:
        """The number of elements."""
        return product(self.shape)

    def as_(
        self, role: Role, bits: int | None = None, name: str | None = None, index: int | None = None
    ) -> Tensor:
        """Return the same elements in another role, with another width, name or index if given."""
        return replace(
            self,
            role=role,
            bits=self.bits if bits is None else bits,
            name=self.name if name is None else name,
            index=self.index if index is None else index,
        )
