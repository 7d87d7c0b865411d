"""Says which memories of a sweep cost the same at every capacity, so that the largest wins."""

from __future__ import annotations

from collections.abc import Iterator

from hwmodel.vary.sweep.plan import Plan

__all__ = ["flat_memories"]

LEVELS = "hardware.levels."
PRICES = frozenset({"access_energy", "read_energy", "write_energy"})


def flat_memories(plan: Plan) -> str:
    """Name the memories of which the capacity varies and the price does not; "" for none."""
    found: dict[str, list[str]] = {}
    for name, chip in _flat(plan):
        found.setdefault(name, []).append(chip)
    named = ", ".join(f"{name} of {' and '.join(chips)}" for name, chips in found.items())
    what = "the same at every capacity: the largest will win (docs/sweeps.md)"
    return f"{named} {'cost' if len(found) > 1 else 'costs'} {what}" if found else ""


def _flat(plan: Plan) -> Iterator[tuple[str, str]]:
    for index, chip in enumerate(plan.specs["hardware"]):
        moved = {
            setting.path
            for axis in plan.axes
            for option in axis.settings.get(("hardware", index), ())
            for setting in option
        }
        for memory in (buffer for level in chip.levels for buffer in level.buffers):
            own = {path.removeprefix(f"{LEVELS}{memory.name}.") for path in moved}
            if "capacity" in own and memory.energy is None and not own & PRICES:
                yield memory.name, chip.name
