"""Nodes of the search: classes of tiles of the outer levels, and what all below them costs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwmodel.tiling.optimal.bounds import Level, Space, Weights
from hwmodel.tiling.optimal.bounds import level as level_of
from hwmodel.tiling.optimal.budget import STEPS
from hwmodel.tiling.optimal.chains import Nest
from hwmodel.tiling.optimal.compiled import kernel
from hwmodel.tiling.optimal.listing import least
from hwmodel.tiling.optimal.outer_rows import nearer
from hwmodel.tiling.optimal.tables import Chosen, Classes, Tables, below, chosen, raised
from hwmodel.tiling.pricing import added
from hwmodel.work.problem import Operand

__all__ = [
    "NOTHING",
    "Node",
    "Order",
    "Part",
    "Place",
    "child",
    "children",
    "cost",
    "nest_of",
    "orders",
    "root",
    "term",
    "weights_below",
]

Place = tuple[int, ...]
NOTHING = np.empty((0, 6))  # is added to weights
WALK = 20_000  # steps of the walk of one level below one of many nodes
SPENT = 4_000_000  # steps of the walks below all of them


@dataclass(frozen=True)
class Order:
    """The operands held at each boundary, and the levels between them."""

    held: tuple[Operand, ...]
    levels: tuple[Level, ...]


def orders(space: Space, choices: list[tuple[Operand, ...]]) -> list[Order]:
    """All choices of the operands held, and the levels between them, which they share."""
    known: dict[tuple[int, tuple[Operand, Operand]], Level] = {}
    found = []
    for held in choices:
        around: tuple[Operand, ...] = (*held, "F")
        for key in enumerate(pairwise(around), start=1):
            if key not in known:
                known[key] = level_of(space, key[0], *key[1])
        levels = tuple(known[key] for key in enumerate(pairwise(around), start=1))
        found.append(Order(held, levels))
    return found


class Part(NamedTuple):
    """The least energy of one level, and classes that have it, if they are known."""

    energy: float
    place: Place | None


@dataclass(frozen=True)
class Node:
    """Classes of the outer levels of an order; none at the root."""

    order: Order
    chosen: tuple[Chosen, ...]
    done: float  # what these levels cost at least
    tables: Tables  # of the levels below
    rest: tuple[Part, ...]  # what each level below costs at least

    @property
    def bound(self) -> float:
        """The least energy of all tilings of the node."""
        return self.done + self.below

    @property
    def below(self) -> float:
        """What all levels below cost at least."""
        return float(added(part.energy for part in self.rest))

    @property
    def crossing(self) -> float:
        """Of the boundary below the last level: see `Level`."""
        return self.order.levels[len(self.chosen) - 1].crossing if self.chosen else 0.0

    @property
    def next_below(self) -> float:
        """The same without the next one."""
        return float(added(part.energy for part in self.rest[1:]))


def root(classes: Classes, order: Order, known: dict[Level, Part]) -> Node:
    """The node of all tilings of an order.

    Args:
        known: least energies of levels, which orders share.
    """
    for level in order.levels:
        if level not in known:
            known[level] = Part(*least(classes, level, level.weights, classes.whole))
    return Node(order, (), 0.0, classes.whole, tuple(known[level] for level in order.levels))


def weights_below(level: Level, above: tuple[Chosen, ...], crossing: float) -> Weights:
    """The weights of a level under tiles of known classes.

    Where the boundary above holds ifmaps, rows of this level times visits of the upper one are
    paid; the upper level's own term has taken its own rows for them.
    """
    if not crossing:
        return level.weights
    last = above[-1]
    paid = crossing * last.pieces[1]
    taken = paid * last.rows * last.columns
    own = level.weights
    return own._replace(R=own.R + paid, constant=own.constant - taken)


def term(
    classes: Classes, level: Level, weights: Weights, tables: Tables, place: Place
) -> float | None:
    """The energy of classes at a level; None if their tiles are larger than the ones above."""
    if any(i < j for i, j in zip(place, tables.first.tolist(), strict=True)):
        return None
    axes = classes.axes
    pieces = tuple(p[i] for p, i in zip(tables.pieces, place, strict=True))
    rows = max(axes[0][1, place[3], place[5]], tables.rows[0])
    return cost(weights, pieces, rows * max(axes[1][1, place[4], place[6]], tables.rows[1]))


def cost(w: Weights, pieces: tuple[float, ...], R: float) -> float:
    """The energy of a level by the pieces of all loops and the rows times columns of I."""
    n, m, c, ho, wo, hf, wf = pieces
    own = w.constant + w.S * c * hf * wf + w.R * R + w.B * ho * wo * n
    return float(own + (w.A + w.RA * R) * m)


def child(classes: Classes, node: Node, place: Place, energy: float, reach: float) -> Node | None:
    """The node with the classes at `place` for the next level; None if it costs `reach` or more.

    Args:
        energy: of these classes, under the node's weights.
    """
    order, k = node.order, len(node.chosen)
    own = chosen(classes, node.tables, order.levels[k], place)
    fitting = own if k else nearer(classes, order.levels[k], own)
    if fitting is None:
        return None
    fitting = fitting._replace(pieces=raised(classes, fitting, node.chosen))
    if fitting != own:
        own, weights = fitting, weights_below(order.levels[k], node.chosen, node.crossing)
        energy = max(energy, cost(weights, own.pieces, own.rows * own.columns))
    above = (*node.chosen, own)
    done, rest = node.done + energy, list(node.rest[1:])
    if not rest:
        return Node(order, above, done, node.tables, ()) if done < reach else None
    tables = below(classes, above)
    total = done + float(added(part.energy for part in rest))
    for j, before in enumerate(rest):
        if total >= reach:
            return None
        level = order.levels[k + 1 + j]
        weights = weights_below(level, above, order.levels[k].crossing if j == 0 else 0.0)
        others = total - before.energy
        rest[j] = _raised(classes, level, weights, tables, before, reach - others)
        total = others + rest[j].energy
    return Node(order, above, done, tables, tuple(rest)) if total < reach else None


def children(
    classes: Classes,
    node: Node,
    places: NDArray[np.int64],
    reach: float,
    moved: NDArray[np.float64] = NOTHING,
    as_found: bool = False,
) -> NDArray[np.float64]:
    """Bounds of the nodes with the classes at each of `places` for the next level, compiled.

    As those of `child`; from `reach` on only that they are no less. Those of the last places are
    left out where all would take too much work.

    Args:
        moved: added to the weights of the levels below for a second bound [levels, 6]; see `dual`.
        as_found: where a level takes too much work, its least energy as far as it is known, which
            is no bound.
    """
    k, levels = len(node.chosen), node.order.levels
    tables = node.tables
    own = tables.flat, tables.first, tables.rows, *classes.axes, levels[k].room_table
    below = levels[k + 1 :]
    rooms = [level.room_table for level in below] or [levels[k].room_table]
    known_at = [part.place if part.place is not None else (-1,) * 7 for part in node.rest[1:]]
    inner = (
        *classes.axes,
        np.concatenate(rooms),
        np.cumsum([0, *map(len, rooms)]),
        np.array([level.weights for level in below], float).reshape(-1, 6),
        np.array([part.energy for part in node.rest[1:]], float),
        np.array(known_at, np.int64).reshape(-1, 7),
        moved,
    )
    above = tuple(
        np.array([getattr(one, field) for one in node.chosen], float).reshape(-1, 7)
        for field in ("low", "high", "pieces")
    )
    weights = np.array(weights_below(levels[k], node.chosen, node.crossing), float)
    bounds = np.empty(len(places))
    crossing = float(levels[k].crossing) if below else 0.0
    paid = weights, float(node.done), crossing, float(reach)
    # In one layout and one type for any number of levels: each other is compiled for some seconds.
    given = classes.flat, own, inner, above, paid, np.ascontiguousarray(places), bounds
    number, work = kernel("children")(*given, WALK, SPENT, as_found, classes.arrays)
    classes.space.budget.spend(1 + work / STEPS)
    return bounds[:number]


def _raised(
    classes: Classes, level: Level, weights: Weights, tables: Tables, before: Part, reach: float
) -> Part:
    """The least energy of a level under further tiles, from that under fewer.

    Args:
        reach: beyond which nothing need be known.
    """
    still = None
    if before.place is not None:
        still = term(classes, level, weights, tables, before.place)
    if still is not None and still <= before.energy * (1 + 1e-15):
        return before  # what was least is still there, and costs no more
    most = reach if still is None else min(reach, still)
    found = Part(*least(classes, level, weights, tables, most))
    if found.place is None and still is not None and still <= found.energy:
        found = Part(still, before.place)
    return found if found.energy > before.energy else before


def nest_of(node: Node, reach: float) -> Nest:
    """The classes of all levels, and the pieces up to which a loop alone does not cost `reach`."""
    slack = max(reach - node.done, 0.0)
    pieces = np.array([one.pieces for one in node.chosen])
    most = np.empty(pieces.shape, np.int64)
    for i, (level, own) in enumerate(zip(node.order.levels, pieces, strict=True)):
        w, (n, m, c, ho, wo, hf, wf) = level.weights, own
        R = node.chosen[i].rows * node.chosen[i].columns
        of_B, of_S, of_A = w.B * n * ho * wo, w.S * c * hf * wf, (w.A + w.RA * R) * m
        each = np.array([of_B, of_A, of_S, of_B, of_B, of_S, of_S]) / own
        with np.errstate(divide="ignore", invalid="ignore"):
            more = np.where(each > 0, (slack * (1 + 1e-9) + 1e-300) / each, np.inf)
        most[i] = own + np.minimum(more, level.space.problem.extent)
    return Nest(
        places=np.array([one.place for one in node.chosen]),
        least=np.array([one.low for one in node.chosen], np.int64),
        largest=np.array([one.high for one in node.chosen], np.int64),
        fewest=pieces.astype(np.int64),
        most=most,
    )
