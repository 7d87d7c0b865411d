"""The derivation of one product: loop nest, tiling, accesses, operations, energy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hwmodel.graph.node import Node
from hwmodel.model import widths
from hwmodel.model.energy import Product, Row
from hwmodel.model.evaluate import Report
from hwmodel.model.prices import price
from hwmodel.tiling.accesses import Cut, sums_moved
from hwmodel.tiling.tile import Tiling
from hwmodel.views.explain.pieces import (
    Tiled,
    piece_steps,
    pieces_table,
    room_steps,
    row_steps,
    shown_windows,
)
from hwmodel.views.explain.steps import TIMES, Section, Step, computed, energy, exact, times
from hwmodel.views.loop_nest import loop_nest
from hwmodel.work.problem import OPERANDS, Operand

__all__ = ["NumberedRow", "product_sections"]

NumberedRow = tuple[int, Row]
_HELD = {"F": "Filters", "I": "Ifmaps", "O": "Sums"}
_ACCESSES = "docs/model.md section 2"


def product_sections(
    work: Product, tiling: Tiling, node: Node, report: Report, rows: Sequence[NumberedRow]
) -> Iterator[Section]:
    """One pass of one layer, from its loops to the energy of its `rows`."""
    tiled = Tiled(work.problem, tiling.mapping, report.hardware, report.accounting)
    yield _loops(work)
    nest = loop_nest(work.problem, tiling.mapping, report.hardware, report.accounting)
    yield Section(
        f"{work.phase}: tiling", 3, _proof(tiling, report), nest, steps=tuple(room_steps(tiled))
    )
    yield Section(
        f"{work.phase}: pieces of the loops", 3,
        "A loop that no line is about is in one piece, or in as many as at the level above.",
        table=pieces_table(tiled), steps=(*piece_steps(tiled), *row_steps(tiled)),
    )  # fmt: skip
    *moved, operated = rows
    for index in range(len(report.hardware.levels)):
        yield _Boundary(work, tiled, index).section(moved)
    yield _operations(work, node, report, operated)


def _loops(work: Product) -> Section:
    """The loop nest, what moves as I, F and O, and how many elements each has."""
    problem, n = work.problem, work.problem.extent
    g, prefix = _groups(work)
    roles = ", ".join(
        f"{tensor} as {operand} ({bits} bit)"
        for tensor, operand, bits in zip(work.tensors, OPERANDS, problem.bits, strict=True)
    )
    text = (
        f"O[n, m, ho, wo] += I[n, c, hi, wi] F[m, c, hf, wf], with {roles}; "
        f"{'; '.join(shown_windows(problem))}."
    )
    if g:
        text += f" The nest runs {problem.groups:,} times, once a group; groups share nothing."
    steps = (
        computed(
            "elements of F", f"|F| = {prefix}M C HF WF", times(*g, n.M, n.C, n.HF, n.WF),
            problem.F_elements, source="docs/model.md section 1",
        ),
        computed(
            "elements of O", f"|O| = {prefix}N M HO WO", times(*g, n.N, n.M, n.HO, n.WO),
            problem.O_elements, source="docs/model.md section 1",
        ),
    )  # fmt: skip
    return Section(f"Pass {work.phase}", text=text, steps=steps)


def _groups(work: Product) -> tuple[list[int], str]:
    """The number of groups as a factor and as a symbol; nothing if there is one."""
    groups = work.problem.groups
    return ([groups], "g ") if groups > 1 else ([], "")


def _proof(tiling: Tiling, report: Report) -> str:
    """Which search found the tiling, and what is known of it."""
    proof = tiling.certificate
    if proof is None:
        return "Found level by level from the top: greedy, with no claim of an optimum."
    found = "proved optimal" if proof.proved else f"not proved: gap {100 * proof.gap:.4g} %"
    return (
        f"Found by the optimal search, {found}; the memories take at least "
        f"{energy(proof.lower_bound)} {report.unit}."
    )


@dataclass(frozen=True)
class _Boundary:
    """What `levels[index]` is asked for by the level below it, or level 0 by the MACs."""

    work: Product
    tiled: Tiled
    index: int

    @property
    def cuts(self) -> tuple[Cut, Cut]:
        """Of this level and of the one that asks."""
        upper, lower = self.tiled.cuts[self.index : self.index + 2]
        return upper, lower

    @property
    def held(self) -> Operand:
        """What stays while the rest passes; at level 0, filters."""
        return (*self.tiled.mapping.held, "F")[self.index]

    @property
    def sums(self) -> int:
        """How often a sum of each output arrives here."""
        return int(sums_moved(*self.cuts, self.held))

    @property
    def leaving(self) -> int:
        """How often a sum of each output goes on from here; once from the outermost level."""
        return _Boundary(self.work, self.tiled, self.index - 1).sums if self.index else 1

    def pieces(self, operand: Operand) -> tuple[Cut, str]:
        """The cut whose pieces count for an operand, and what its level is called."""
        upper, lower = self.cuts
        if self.held == operand:
            return upper, self.tiled.number(self.index)
        below = min(self.index + 1, len(self.tiled.mapping.tiles))  # MACs have the tile of level 0
        return lower, self.tiled.number(below)

    def section(self, moved: Sequence[NumberedRow]) -> Section:
        """Accesses of I, F and O, and the energy of each."""
        hardware = self.tiled.hardware
        asker = [*(level.name for level in hardware.levels), "the MACs"][self.index + 1]
        names = {operand: hardware.holder(self.index, operand).name for operand in OPERANDS}
        steps: list[Step] = []
        for number, row in moved:
            operand = OPERANDS[self.work.tensors.index(row.tensor)]
            if row.level == names[operand]:
                steps += {"I": self._ifmap, "F": self._filter, "O": self._sums}[operand](row)
                steps.append(self._energy(operand, number, row))
        text = f"{_HELD[self.held]} are held while the others pass."
        text += "" if steps else " Nothing is asked here."
        level = hardware.levels[self.index].name
        title = f"{self.work.phase}: what {level} is asked for by {asker}"
        return Section(title, 3, text, steps=tuple(steps))

    def _ifmap(self, row: Row) -> Iterator[Step]:
        n, (_, lower), (cut, i) = self.work.problem.extent, self.cuts, self.pieces("I")
        g, prefix = _groups(self.work)
        j = self.tiled.number(self.index + 1)
        numbers = times(*g, n.N, n.C, lower.rows, lower.columns, cut.M)
        if lower.rows % 1 or lower.columns % 1:  # the source's ratios, where tiles do not divide
            numbers = f"round({numbers})"
        yield computed(
            f"{row.tensor}, elements read from {row.level}",
            f"{prefix}N C rows({j}) columns({j}) #M({i})",
            numbers, self.tiled.asked[self.index].I_reads, source=_ACCESSES,
        )  # fmt: skip

    def _filter(self, row: Row) -> Iterator[Step]:
        cut, i = self.pieces("F")
        yield computed(
            f"{row.tensor}, elements read from {row.level}", f"|F| #N({i}) #HO({i}) #WO({i})",
            times(self.work.problem.F_elements, cut.N, cut.HO, cut.WO),
            self.tiled.asked[self.index].F_reads, source=_ACCESSES,
        )  # fmt: skip

    def _sums(self, row: Row) -> Iterator[Step]:
        """Unfinished sums that come back and that leave, and finished ones."""
        asked, size = self.tiled.asked[self.index], self.work.problem.O_elements
        fetched, left = asked.O_partial_reads, asked.O_partial_writes
        again = f"{size:,} {TIMES} ({self.sums:,} - {self.leaving:,})"
        anew = f"{size:,} {TIMES} ({self.sums:,} - 1)"
        (cut, i), tensor = self.pieces("O"), row.tensor
        if fetched or left:
            yield computed(
                f"{tensor}, how often a sum of each output arrives at {row.level}",
                f"S = #C({i}) #HF({i}) #WF({i})", times(cut.C, cut.HF, cut.WF), self.sums,
            )  # fmt: skip
        if fetched:
            yield computed(
                f"{tensor}, unfinished sums read from {row.level}: by all arrivals but those "
                f"that find none there, T = {self.leaving:,}, as often as a sum goes on",
                "|O| (S - T)", again, fetched, source=_ACCESSES,
            )  # fmt: skip
        if left and self.tiled.accounting.counting.counting == "paper" and self.index:
            text = f"{tensor}, unfinished sums written to {row.level}: as many as come back"
            yield computed(text, "|O| (S - T)", again, left, source=_ACCESSES)
        elif left:
            text = f"{tensor}, unfinished sums written to {row.level}: all but the last"
            yield computed(text, "|O| (S - 1)", anew, left, source=_ACCESSES)
        if asked.O_writes:
            text = f"{tensor}, finished sums written to {row.level}"
            yield computed(text, "|O|", times(size), asked.O_writes, source=_ACCESSES)

    def _energy(self, operand: Operand, number: int, row: Row) -> Step:
        """Accesses times bits times the energy of a bit there."""
        memory = self.tiled.hardware.holder(self.index, operand)
        asked, bits = self.tiled.asked[self.index], self.work.problem.bits
        read, write = memory.read_energy_per_bit, memory.write_energy_per_bit
        terms = {
            "I": [("reads b_I e_read", asked.I_reads, bits.I, read)],
            "F": [("reads b_F e_read", asked.F_reads, bits.F, read)],
            "O": [
                ("reads b_sum e_read", asked.O_partial_reads, self.tiled.sum_bits, read),
                ("unfinished b_sum e_write", asked.O_partial_writes, self.tiled.sum_bits, write),
                ("finished b_O e_write", asked.O_writes, bits.O, write),
            ],
        }[operand]
        terms = [term for term in terms if term[1]]
        return computed(
            f"{row.tensor}, energy in {row.level}",
            " + ".join(formula for formula, *_ in terms),
            " + ".join(times(elements, width, exact(e)) for _, elements, width, e in terms),
            row.energy, self.tiled.hardware.energy_unit, show=energy, source=memory.source,
            row=number,
        )  # fmt: skip


def _operations(work: Product, node: Node, report: Report, numbered: NumberedRow) -> Section:
    """Operations of the pass and their energy."""
    number, row = numbered
    (operation,) = work.operations
    arithmetic = widths.treatment(report.method, node, report.accounting).arithmetic[work.phase]  # type: ignore[index]
    macs = report.batch * node.macs
    formula, numbers, text = _each(arithmetic, work, node, report)
    paid = price(operation.kind, operation.bits, report.hardware, report.accounting)
    steps = (
        computed(
            f"operations of kind {operation.kind}: {text}", f"MACs{formula}", times(macs) + numbers,
            operation.times, source="docs/model.md section 5",
        ),
        computed(
            "energy of the operations", "operations e_operation",
            times(operation.times, exact(paid)), row.energy, report.unit, show=energy, row=number,
        ),
    )  # fmt: skip
    return Section(
        f"{work.phase}: operations", 3,
        f"The method computes this pass by {arithmetic}.", steps=steps,
    )  # fmt: skip


def _each(arithmetic: str, work: Product, node: Node, report: Report) -> tuple[str, str, str]:
    """Operations for each MAC: formula, numbers and words."""
    if arithmetic == "accumulate":
        bits = report.edges[node.layer.name].signal_bits
        text = f"to accumulate a {bits}-bit signal takes 2b - 1 Boolean operations"
        return " (2b - 1)", f" {TIMES} (2 {TIMES} {bits} - 1)", text
    if arithmetic == "logic" and report.accounting.counting.boolean_price == "adder":
        n = work.problem.extent
        terms = n.C * n.HF * n.WF
        bits = terms.bit_length()
        text = (
            f"an XNOR, and the addition to a sum of C HF WF = {terms:,} terms, which has "
            f"n = ceil(log2({terms:,} + 1)) = {bits} bit"
        )
        return " (1 + (2n - 1))", f" {TIMES} (1 + (2 {TIMES} {bits} - 1))", text
    return "", "", "one for each MAC"
