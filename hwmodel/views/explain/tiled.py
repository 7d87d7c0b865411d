"""One product as it is tiled: its loops, the nest, the room that tiles take, pieces and rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hwmodel.specs.hardware import Hardware
from hwmodel.tiling.accesses import all_cuts
from hwmodel.tiling.derived import derived
from hwmodel.tiling.options import Memories, SearchOptions
from hwmodel.tiling.rows import products
from hwmodel.tiling.tile import Tiling, footprints
from hwmodel.views.explain.lines import computed, count, energy, reasons, table
from hwmodel.views.loop_nest import loop_nest
from hwmodel.views.posed import kept_apart, of_several
from hwmodel.work.flattening import merged
from hwmodel.work.problem import Extents, Problem, Window
from hwmodel.work.tensor import product
from hwmodel.work.work import Multiply

__all__ = ["product_lines"]


def product_lines(
    work: Multiply,
    tiling: Tiling,
    memories: Memories,
    options: SearchOptions,
    chip: Hardware,
    room: Iterable[str] = (),
) -> Iterator[str]:
    """Describe one pass of one layer before its entries: what is multiplied, how it is cut.

    Args:
        room: that is left to tiles beside what stays on the chip, a line for each memory.
    """
    problem, mapping = work.problem, tiling.mapping
    yield f"## Pass {work.pass_}\n"
    yield f"{_loops(work, problem, options, chip)}\n"
    yield from _padded(work, problem, options)
    if not work.leaves:
        yield (
            "Finished sums are taken as they are made by what is fused behind (docs/model.md "
            "section 6): no row writes them, and what is written stands in that layer.\n"
        )
    yield f"### {work.pass_}: tiling\n"
    yield f"{_proof(tiling, chip.unit)}\n"
    yield f"```\n{loop_nest(problem, mapping, memories, options)}\n```\n"
    yield from room
    for level in range(1, len(mapping.tiles) + 1):
        for one in footprints(problem, mapping, memories, level, options):
            if one.parts and not (one.capacity is None and len(one.parts) == 1):  # it stays
                free = "unlimited" if one.capacity is None else f"of {one.capacity:,}"
                yield f"- {one.memory} is taken up, {computed(one.parts, one.used)} bit, {free}"
    yield f"\n### {work.pass_}: pieces of the loops\n"
    numbers = range(len(mapping.tiles) - 1, -1, -1)
    names = [f"{i} ({x.name})" for i, x in zip(numbers, memories.levels[1:], strict=True)]
    cuts = all_cuts(problem, mapping.tiles, options.counting, options.rule)[1:]
    yield from table(
        ("level", *(f"#{loop}" for loop in Extents._fields), "rows", "columns"),
        [(name, *map(count, cut)) for name, cut in zip([*names, "MAC"], cuts, strict=True)],
    )
    yield ""
    told: set[str] = set()
    for name, terms, value in derived(problem, mapping.tiles, options.counting, options.rule):
        come = computed(terms, value) if terms else f"blocks of many sizes: `{count(value)}`"
        yield f"- {name}: {come}{reasons((factor for term in terms for factor in term), told)}"
    yield ""


def _loops(work: Multiply, problem: Problem, options: SearchOptions, chip: Hardware) -> str:
    """Write the loop nest, and what moves as I, F and O."""
    roles = ", ".join(
        f"{tensor} as {operand} ({tensor.bits} bit)" for operand, tensor in work.operands.items()
    )
    axes = [
        ("hi", "ho", "hf", "rows", work.nest.height),
        ("wi", "wo", "wf", "columns", work.nest.width),
    ]
    read = "; ".join(
        f"{at} = {_place(window, out, tap)}, of {window.size:,} {word}"
        for at, out, tap, word, window in axes
    )
    text = f"O[n, m, ho, wo] += I[n, c, hi, wi] F[m, c, hf, wf], with {roles}; {read}."
    sums = max(options.partial_sum_bits, work.O.bits)
    text += f" A sum that leaves unfinished has {sums} bit."
    where = "(docs/tiling.md, 'Loops that are one')"
    for one in merged(work.nest.extent, problem.extent):
        text += f" As it is tiled, the loop {of_several(one)}, so that the others have length 1 "
        text += f"{where}; operations are told by all seven."
    touched = options.rows == "touched"
    for line in kept_apart(work.nest, problem.extent, chip, touched=touched):
        text += f" {line} {where}."
    if problem.groups > 1:
        text += f" The nest runs {problem.groups:,} times, once a group; groups share nothing."
    return f"{text} [docs/model.md section 1]"


def _padded(work: Multiply, problem: Problem, options: SearchOptions) -> Iterator[str]:
    """Say how many of the MACs that are paid meet padding, for which nothing is read."""
    n, rule = problem.extent, options.rule
    down = products(problem.height, rule, n.HO, n.HF)
    across = products(problem.width, rule, n.WO, n.WF)
    met = work.repeats * problem.groups * n.N * n.M * n.C * down * across
    paid = product(work.macs)
    if met < paid:
        yield (
            f"Of {paid:,} MACs that are paid, {paid - met:,} meet padding: for them nothing is "
            "read, and they are no work where utilisation is told.\n"
        )


def _place(window: Window, out: str, tap: str) -> str:
    """Write the row of I that an output reads through a tap."""
    w = window
    place = f"{w.step} {out} + {w.dilation} {tap}"
    place += f" - {w.pad}" if w.pad > 0 else f" + {-w.pad}" if w.pad else ""
    return f"({place}) / {w.spread} where it is whole" if w.spread > 1 else place


def _proof(tiling: Tiling, unit: str) -> str:
    """Say which search found the tiling, and what is known of it."""
    proof = tiling.certificate
    if proof is None:
        return "Found level by level from the top: greedy, with no claim of an optimum."
    found = "proved optimal" if proof.proved else f"not proved: gap {100 * proof.gap:.4g} %"
    return (
        f"Found by the optimal search, {found}; memories, hops and time take at least "
        f"{energy(proof.lower_bound)} {unit} of {energy(proof.energy)}."
    )
