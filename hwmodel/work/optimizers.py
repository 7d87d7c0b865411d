"""Optimizers: what one step of a weight remembers, moves and computes.

Counts are of one weight of a matrix of m x n, m the shorter side. What is one number for all
weights of a tensor is folded: the correction of Adam's bias into the rate and epsilon.

Source: the update rules, written out in docs/model.md section 6.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Literal, NamedTuple, get_args

from hwmodel.work.tensor import Bits, Factor, Pass, Role, Tensor
from hwmodel.work.work import Operate, Works, quantised, read, write

__all__ = ["OPTIMIZERS", "Optimizer", "Step", "optimizer_step", "state_bits", "step_of"]

Optimizer = Literal[
    "sgd", "sgd-decay", "momentum", "adam", "adamw", "lion", "adafactor", "adafactor-momentum",
    "adam-8bit", "lion-8bit", "galore",
]  # fmt: skip
OPTIMIZERS: tuple[str, ...] = get_args(Optimizer)
UPDATE = Pass.UPDATE
NARROW = Fraction(8) + Fraction(32, 256)  # codes of 8 bit, a scale of 32 bit for 256 of them
LEAST_8BIT = 4096  # weights of a tensor; smaller ones keep states in full precision


class State(NamedTuple):
    """What is remembered from step to step."""

    name: str
    bits: Bits | None = None  # None: as wide as the weight that is stepped
    elements: int | None = None  # None: as many as there are weights
    written: bool = True


class Step(NamedTuple):
    """States of an optimizer, and its operations for each weight."""

    states: tuple[State, ...] = ()
    macs: Bits = 1
    adds: Bits = 0  # additions and comparisons, in full precision
    specials: Bits = 0  # roots and divisions
    gradient_reads: int = 1


_M, _V = State("m"), State("v")
_STEPS: dict[str, Step] = {
    "sgd": Step(),
    "sgd-decay": Step((), 2),
    "momentum": Step((State("momentum"),), 2),
    "adam": Step((_M, _V), 6, 1, 2),
    "adamw": Step((_M, _V), 7, 1, 2),
    "lion": Step((_M,), 6, 1),
    "adam-8bit": Step((_M._replace(bits=NARROW), _V._replace(bits=NARROW)), 10, 19, 2),
    "lion-8bit": Step((_M._replace(bits=NARROW),), 8, 10),
}


def step_of(rule: str, shape: tuple[int, int], rank: int = 0) -> Step:
    """Return a step of an optimizer for the weights of a matrix.

    Vectors have full-precision squares under adafactor and plain Adam under galore; tensors below
    4096 weights have states in full precision under the 8-bit ones.

    Args:
        shape: rows and columns; (1, n) for a vector.
        rank: of galore's projection.
    Source: `torch.optim` 2.13, lion-pytorch 0.2.5, bitsandbytes 0.50.2 (`min_8bit_size`), galore-
        torch 1.0, as `tests/data/today/optimizers.csv` cites them.
    """
    m, n = sorted(shape)
    if rule in ("adam-8bit", "lion-8bit") and m * n < LEAST_8BIT:
        return _STEPS[rule.partition("-")[0]]
    if rule.startswith("adafactor"):
        squares = (State("r", elements=shape[0]), State("c", elements=shape[1])) if m > 1 else (_V,)
        if rule == "adafactor":
            return Step(squares, 7, 1, 1, gradient_reads=2)
        return Step((_M, *squares), 9, 1, 1, gradient_reads=2)
    if rule == "galore" and (m == 1 or rank > m):
        return _STEPS["adam"]
    if rule == "galore":
        low, share = rank * n, Fraction(rank, m)
        states = (
            State("P", elements=rank * m, written=False),
            _M._replace(elements=low),
            _V._replace(elements=low),
        )
        return Step(states, 2 * rank + 1 + 6 * share, share, 2 * share)
    return _STEPS[rule]


def state_bits(step: Step, weights: int, full: int) -> Fraction:
    """Return the bits of all states for each weight [bit]."""
    bits = sum(
        Fraction(full if s.bits is None else s.bits) * (s.elements or weights) for s in step.states
    )
    return Fraction(bits) / weights


def optimizer_step(
    rule: str,
    F: Tensor,
    dF: Tensor,
    latent: int,
    *,
    shape: tuple[int, int] | None = None,
    rank: int = 0,
    states: tuple[int, ...] = (),
    copies: tuple[Tensor, ...] = (),
) -> Works:
    """Step every weight: read and write its states and F, read dF.

    A weight narrower than its latent one is written anew from that, and so is every further copy.

    Args:
        latent: bits of the weight that is stepped [bit].
        shape: rows and columns of the matrix; left out, a vector.
        states: widths of the states, where a method states them [bit].
        copies: further narrow words of the weights, which passes back read.
    """
    step = step_of(rule, shape or (1, F.elements), rank)
    narrow = F.bits < latent
    weight = replace(F.as_(Role.LATENT if narrow else Role.OPERAND, latent), floating=True)
    kept, written = [weight], [weight]
    for place, state in enumerate(step.states):
        bits = latent if state.bits is None else state.bits
        own = states[place] if states else bits
        size = F if state.elements is None else _sized(F, state.elements)
        one = size.as_(Role.MOMENT, own, name=f"{state.name}({F.name})")
        kept.append(one)
        written += [one] if state.written else []
    again = "statistics, then the step" if step.gradient_reads > 1 else ""
    yield from read(UPDATE, dF, times=step.gradient_reads, why=again)
    yield from read(UPDATE, *kept)
    yield from _done(F, step, tuple(kept), rule)
    yield from write(UPDATE, *written)
    words = (*([F] if narrow else []), *copies)
    yield from write(UPDATE, *words, why="the narrow copy, made of the latent")
    made = [one for one in words if one.word]
    if made:
        yield from quantised(UPDATE, made[0].as_(Role.COPY), weight, len(made))


def _done(F: Tensor, step: Step, words: tuple[Tensor, ...], rule: str) -> Iterator[Operate]:
    """Yield the operations of a step; a fraction of one is one for so many weights."""
    wide = tuple(one for one in words if isinstance(one.bits, int))
    for kind, times, what in (
        ("mac", step.macs, "multiply-adds of a step of"),
        ("add", step.adds, "additions of"),
        ("special", step.specials, "roots and divisions of"),
    ):
        whole, rest = divmod(times, 1)
        each = F
        if rest:
            share = Fraction(times)
            each, whole = _sized(F, int(F.elements * share)), 1
        operands = wide if kind == "add" else ()
        yield Operate(UPDATE, kind, each, int(whole), operands, f"{what} {rule}")  # type: ignore[arg-type]


def _sized(F: Tensor, elements: int) -> Tensor:
    return replace(F, shape=(Factor("elements", elements),))
