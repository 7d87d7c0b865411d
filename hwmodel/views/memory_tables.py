"""What a run keeps at its peak: by class, by outermost memory, and the largest tensors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from hwmodel.model.memory import Occupancy
from hwmodel.specs.hardware import Buffer, Hardware
from hwmodel.views.screen_tables import table

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["fits", "memory_tables"]

LARGEST = 10  # tensors that are listed
MIB = 8 * 2**20  # [bit]


def memory_tables(
    kept: Occupancy, run: str, chips: Sequence[Hardware] = ()
) -> Iterator[RenderableType | str]:
    """Yield the tables and the sentences that `hwmodel memory` prints."""
    most = kept.peak()
    parts = table(f"{run}, at the peak", ["class"], ["bytes", "MiB", "%"])
    for part, bits in most.parts.items():
        parts.add_row(part, _bytes(bits), f"{bits / MIB:,.2f}", f"{100 * bits / most.bits:.1f}")
    parts.add_row("all", _bytes(most.bits), f"{most.bits / MIB:,.2f}", "100.0")
    yield parts
    largest = table("the largest tensors there", ["tensor", "class", "from", "to"], ["bytes"])
    for one in most.tensors[:LARGEST]:
        ends = (str(kept.steps[number]) for number in (one.first, one.last))
        largest.add_row(one.name, one.part, *ends, _bytes(one.bits))
    yield largest
    yield from (_places(kept, chip) for chip in chips)
    yield (
        f"Peak: {_bytes(most.bits)} B at {most.step}, step {most.number + 1} of "
        f"{len(kept.steps)}; {len(most.tensors)} tensors live then."
    )
    yield from (f"{_verdict(kept, chip)}." for chip in chips)


def fits(kept: Occupancy, chip: Hardware) -> bool:
    """Say whether a run has room in the outermost memories of a chip."""
    return not _missing(kept, chip)


def _missing(kept: Occupancy, chip: Hardware) -> dict[str, int]:
    """Return the outermost memories that are too small, and what each lacks [bit]."""
    lacks = {
        memory.name: kept.peak(memory.kinds).bits - memory.capacity_bits
        for memory in chip.levels[0].buffers
        if memory.capacity_bits is not None
    }
    return {name: bits for name, bits in lacks.items() if bits > 0}


def _verdict(kept: Occupancy, chip: Hardware) -> str:
    """Say whether a run fits on a chip, and by how much it does not."""
    name = chip.label or chip.name
    lacks = [
        f"by {bits / MIB:,.2f} MiB in {memory}" for memory, bits in _missing(kept, chip).items()
    ]
    if lacks:
        return f"Does not fit on {name}: {', '.join(lacks)}"
    sizes = [memory.capacity_bits for memory in chip.levels[0].buffers]
    free = "whose outermost memory is unlimited here" if None in sizes else ""
    return f"Fits on {name}{free and ', '}{free}"


def _places(kept: Occupancy, chip: Hardware) -> RenderableType:
    listed = table(
        f"outermost memories of {chip.label or chip.name}",
        ["memory", "holds", "at"],
        ["peak [B]", "has [B]", ""],
    )
    for memory in chip.levels[0].buffers:
        most = kept.peak(memory.kinds)
        listed.add_row(
            memory.name, ", ".join(memory.kinds), str(most.step), _bytes(most.bits),
            *_room(memory, most.bits),
        )  # fmt: skip
    return listed


def _room(memory: Buffer, bits: int) -> tuple[str, str]:
    """What a memory has, and whether that is enough."""
    if memory.capacity_bits is None:
        return "unlimited", ""
    missing = bits - memory.capacity_bits
    return f"{memory.capacity_bits // 8:,}", f"{_bytes(missing)} B too few" if missing > 0 else ""


def _bytes(bits: int) -> str:
    return f"{-(-bits // 8):,}"
