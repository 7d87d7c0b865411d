"""A ledger as one adds it up by hand: reads and writes of a tensor in a memory together.

Calculations by hand mostly ask how often a memory is asked for a tensor. Here a tensor is called
as those calculations call it ("saved I"), and operations have their kind in its place.
"""

from typing import NamedTuple

import pandas as pd

from hwmodel.model.entries import multiplied
from hwmodel.model.ledger import Component, Ledger
from hwmodel.model.prices import Prices
from hwmodel.tiling.options import SearchOptions, memories
from hwmodel.work.problem import LoopNest
from hwmodel.work.tensor import Direction, Factor, Pass, Role, Tensor
from hwmodel.work.work import Multiply, Operate, Operation, Tensors

OPERATIONS = "compute"  # in the place of a memory


class Row(NamedTuple):
    layer: str
    phase: str
    component: str  # memory and compute of products; elementwise; update
    tensor: str
    level: str
    accesses: int
    bits: int
    operations: int
    energy: float


def called(entry):
    if entry.direction == Direction.OPERATE:
        return entry.operation
    own = {
        Role.SAVED: f"saved {entry.tensor}",
        Role.KEPT_SUM: "kept sum",
        Role.COPY: f"{entry.bits}-bit copy",
        Role.LATENT: f"latent {entry.tensor}",
        Role.MOMENT: entry.tensor.partition("(")[0],
        Role.ACCUMULATOR: "accumulator",
        Role.FORK: "dO",
        Role.BROADCAST: "dO",
        Role.EXTRA: ("d" if entry.tensor.startswith("dO") else "")
        + entry.factors[0].why.partition(": preactivation_words")[0],
    }.get(entry.role, entry.tensor)
    return own.replace("P", "F") if entry.tensor in ("P", "dP") else own


def part(entry):
    if entry.pass_ == Pass.UPDATE:
        return "update"
    if entry.component == Component.ELEMENTWISE:
        return "elementwise"
    return "compute" if entry.direction == Direction.OPERATE else "memory"


def merged(report):
    """The rows of a report."""
    return merge(report.ledger, report.prices)


def merge(ledger, prices):
    found = {}
    for entry in ledger.entries:
        role = ""  # what is moved for one reason stands together
        if entry.component == Component.ELEMENTWISE and entry.memory:
            role = f"{entry.role} of {entry.tensor}"
        where = called(entry), entry.memory or OPERATIONS
        key = entry.layer, str(entry.pass_), part(entry), *where, role
        accesses, bits, operations, energy = found.get(key, (0, 0, 0, 0.0))
        if entry.memory:
            accesses, bits = accesses + entry.elements, bits + entry.count
        else:
            operations += entry.count
        energy += entry.count * prices.value(entry.key)
        found[key] = accesses, bits, operations, energy
    return [Row(*key[:-1], *sums) for key, sums in found.items()]


def row_table(report):
    """The rows as a table; the column of the pass is called as in the product's."""
    return pd.DataFrame(merged(report)).rename(columns={"phase": "pass"})


def product_rows(problem, mapping, chip, accounting, macs=0):
    """The rows of one product, tiled as it is said, with 32-bit MACs."""
    widths = zip(("I", "F", "O"), problem.bits, strict=True)
    tensors = [Tensor(name, (), bits) for name, bits in widths]
    nest = LoopNest(problem.extent, problem.height, problem.width, problem.groups, ("I", "F", "O"))
    operation = Operation("mac", 32, (Factor("MACs", macs),))
    work = Multiply(Pass.FORWARD, nest, *tensors, (operation,), operation.factors)
    options = SearchOptions.of(accounting, Pass.FORWARD)
    entries = multiplied("layer", work, mapping, memories(chip), options)
    return merge(Ledger(tuple(e for e in entries if e.elements)), Prices(chip, accounting))


def each(node, kind):
    """Operations of a kind in a layer's forward pass, for each element of its output."""

    def tensor(name, shape):
        return Tensor(name, tuple(map(Factor, "CHW", shape)), 32)

    ins = tuple(tensor("I", shape) for shape in node.input_shapes)
    O, F = tensor("O", node.output_shape), Tensor("F", (), 32)  # noqa: E741
    found = [work for work in node.layer.work(Tensors(ins, O, ins, O, F, F))
             if isinstance(work, Operate) and (work.pass_, work.kind) == ("forward", kind)]  # fmt: skip
    assert all(work.each == O for work in found)
    return sum(work.times for work in found)
