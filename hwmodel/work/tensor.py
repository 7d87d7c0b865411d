"""Tensors, and numbers of elements as products of named factors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from math import ceil, prod
from typing import NamedTuple

__all__ = ["KINDS", "Bits", "Direction", "Factor", "Kinds", "Pass", "Role", "Stated", "Tensor"]
__all__ += [
    "TensorKind",
    "Word",
    "format_bits",
    "kind_of",
    "plain",
    "product",
    "shown",
    "stated_bits",
]
__all__ += ["titled", "whole_bits"]

Stated = int | str  # what a network's file says of an element: bits of an integer, or "e4m3"
Bits = int | Fraction  # of an element: whole, or with what blocks of elements share


class Pass(StrEnum):
    """The parts of one training iteration; inference has the first alone."""

    FORWARD = "forward"
    BACKWARD_INPUT = "backward_input"
    BACKWARD_WEIGHT = "backward_weight"
    UPDATE = "update"
    RECOMPUTE = "recompute"  # forward once more, between checkpoints

    @property
    def way(self) -> Pass:
        """The pass of tables with a column for each of four: a second forward is a forward one."""
        return Pass.FORWARD if self == Pass.RECOMPUTE else self


WAYS = tuple(dict.fromkeys(one.way for one in Pass))


class Direction(StrEnum):
    """What has a price: a bit read, written or on its way between memories; an operation."""

    READ = "read"
    WRITE = "write"
    HOP = "hop"  # into one of several memories of a level, or out of it
    OPERATE = "operate"


class TensorKind(StrEnum):
    """What a tensor is in a training iteration, whatever its place in a loop nest.

    A chip's outermost memories hold kinds of tensors; buffers further in hold operands of a nest.
    """

    WEIGHTS = "weights"  # as products read them; biases, scales, shifts and tables
    MAPS = "maps"  # what goes forward, and what is kept of it for the way back
    SIGNALS = "signals"  # what comes back: the loss with respect to maps
    GRADIENTS = "gradients"  # the loss with respect to weights; votes on Boolean weights
    STATE = "state"  # for the update alone: moments, accumulators, latent weights


KINDS: tuple[TensorKind, ...] = tuple(TensorKind)
Kinds = tuple[TensorKind, TensorKind, TensorKind]  # of the tensors at the places I, F and O


class Role(StrEnum):
    """The purpose for which a tensor is moved, where its letter does not say it."""

    OPERAND = "operand"
    UNFINISHED = "unfinished sum"  # leaves before its reduction has ended
    DRAINED = "drained sum"  # an unfinished one, read on its way out
    RETURNED = "returned sum"  # comes back to be continued
    RUNNING = (
        "running sum"  # grows beside scores that move nowhere, and leaves its block unfinished
    )
    AGAIN = "computed again"  # on the way back, since the forward pass kept nothing of it
    LOG_SUM = "log-sum"  # of the exponentials of a row of scores, kept for the way back
    SAVED = "saved"  # kept by the forward pass, for the way back needs it again
    KEPT_SUM = "kept sum"  # the sum before a threshold, stored to weigh the signal
    COPY = "copy"  # the narrower words that products read of a wide tensor
    EXTRA = "extra work"  # what a method does beside the graph
    EXPANDED = "expanded"  # packed words, made into what the product multiplies
    CELL = "cell state"  # of a recurrent layer, from step to step
    STATES = "states"  # of a scan by one kernel an operator, and what they are made of
    MEMBRANE = "membrane"  # of spiking neurons, from step to step
    SUMMED = "summed"  # a gradient added to those of iterations before
    SCALED = "scaled"  # sums of blocks, each times the scales of its operands
    FORK = "fork"  # signals of several takers, added up
    BROADCAST = "broadcast"  # a signal summed over the places to which its tensor was spread
    SHARED = "shared"  # a gradient added to that of the layer which owns the weights
    LOOKED_UP = "looked up"  # rows of a table, once for each time they are used
    LATENT = "latent"  # the full-precision weight behind a narrow one
    MOMENT = "moment"  # what an optimizer remembers of a weight
    VOTE = "vote"  # for or against the flip of a Boolean weight
    ACCUMULATOR = "accumulator"  # votes so far, of a Boolean weight


class Word(NamedTuple):
    """An element of a format as products multiply it, and how many share a scale."""

    bits: int  # of the element alone, without its share of scales [bit]
    floating: str = ""  # "e4m3", "e2m1"; "" for an integer
    block: int = 0  # elements along the reduction that share a scale; 0: none do


class Factor(NamedTuple):
    """One factor of a count or of a price: its name, its value, and the source of the value."""

    name: str
    value: float  # whole, but for ratios of the source's table, rates and prices
    why: str = ""


def format_bits(floating: str) -> int:
    """Return the bits of a floating-point element: a sign, an exponent, a fraction.

    >>> format_bits("e4m3"), format_bits("e2m1")
    (8, 4)
    """
    exponent, _, rest = floating.removeprefix("e").partition("m")
    return 1 + int(exponent) + int(rest)


def stated_bits(stated: Stated) -> int:
    """Return the bits of an element as a network's file states it [bit].

    >>> stated_bits(4), stated_bits("e5m2")
    (4, 8)
    """
    return format_bits(stated) if isinstance(stated, str) else stated


def plain(bits: Bits) -> int | float:
    """Return a width for print: whole numbers whole, fractions as decimals.

    >>> plain(8), plain(Fraction(17, 4))
    (8, 4.25)
    """
    return bits if isinstance(bits, int) else float(bits)


def shown(bits: Bits) -> str:
    """Write a width for a cell of a table of text.

    >>> shown(8), shown(Fraction(17, 4))
    ('8', '4.25')
    """
    return f"{plain(bits):.6g}"


def whole_bits(elements: int, bits: Bits) -> int:
    """Return the bits of so many elements, rounded up once [bit].

    >>> whole_bits(3, Fraction(17, 4))
    13
    """
    return ceil(elements * bits)


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
    return round(prod([factor.value for factor in factors]))


_LETTERS = {
    "I": TensorKind.MAPS, "O": TensorKind.MAPS, "index": TensorKind.MAPS,
    "F": TensorKind.WEIGHTS, "P": TensorKind.WEIGHTS,
    "dI": TensorKind.SIGNALS, "dO": TensorKind.SIGNALS,
    "dF": TensorKind.GRADIENTS, "dP": TensorKind.GRADIENTS,
}  # fmt: skip
_STATES = frozenset({Role.LATENT, Role.MOMENT, Role.ACCUMULATOR})


def kind_of(letter: str) -> TensorKind:
    """Return the kind of the tensor that a letter stands for in a layer with weights.

    >>> kind_of("dO").value, kind_of("F").value
    ('signals', 'weights')
    """
    return _LETTERS[letter]


@dataclass(frozen=True)
class Tensor:
    """A tensor as one pass moves it."""

    name: str  # the source's letter: I, F, O and the loss signals dI, dF, dO
    shape: tuple[Factor, ...]  # [elements]
    bits: Bits  # of one element [bit]
    role: Role = Role.OPERAND
    index: int = 0  # which of several that are alike, from 1; 0 where there is one
    floating: bool = False  # whether words narrower than full precision are floating-point
    second: bool = False  # at the place of F or dF, the second of two maps multiplied, or its dI
    word: Word | None = None  # what products multiply of an element; None: all of its bits
    nonzero: float = 1.0  # share of the elements that are not 0, of a map; 1 where nobody knows

    def __str__(self) -> str:
        return f"{self.name}{self.index or ''}"

    @property
    def kind(self) -> TensorKind:
        """What it is, whoever moves it: by this the outermost memories know what they hold."""
        if self.role in _STATES:
            return TensorKind.STATE
        if self.second:
            return TensorKind.SIGNALS if self.name == "dF" else TensorKind.MAPS
        return kind_of(self.name)

    @property
    def title(self) -> str:
        """Its name, and its role where that is not what the letter says."""
        return titled(str(self), self.role)

    @property
    def elements(self) -> int:
        """The number of elements."""
        return product(self.shape)

    @property
    def operand_bits(self) -> int:
        """Bits of an element that a multiplier sees: without scales and gaps [bit]."""
        return self.word.bits if self.word else ceil(self.bits)

    def as_(
        self,
        role: Role,
        bits: Bits | None = None,
        name: str | None = None,
        index: int | None = None,
    ) -> Tensor:
        """Return the same elements in another role, with another width, name or index if given."""
        return replace(
            self,
            role=role,
            word=self.word if bits in (None, self.bits) else None,
            bits=self.bits if bits is None else bits,
            name=self.name if name is None else name,
            index=self.index if index is None else index,
        )
