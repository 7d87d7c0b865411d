"""How many points a second a sweep computes: `python benchmarks/sweep.py`.

VGG-small over capacities of L1 and L2, energy of the outermost memory, width of the backward
signal, batch, two methods and both chips: 100,000 points, or a grid of fewer values. Cold is a
first run with no tiling known; warm the same points again in the same process. Then one and two
processes, and ever larger grids, with the memory of all processes together.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from hwmodel.vary.sweep.file import SweepFile
from hwmodel.vary.sweep.part import run_part
from hwmodel.vary.sweep.plan import Plan, plan
from hwmodel.vary.sweep.run import run

FACTORS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0)
BATCHES = (1, 4, 16, 64, 256)
# Points: batches, widths, and how many sizes of L1 and of L2; twice two methods on ten energies.
SIZES: dict[int, tuple[tuple[int, ...], tuple[int, ...], int]] = {
    1_000: (BATCHES[:1], (1,), 5),
    10_000: (BATCHES, (1, 16), 5),
    100_000: (BATCHES, (1, 2, 4, 8, 16), 10),
}


class Measured(NamedTuple):
    """One run."""

    points: int
    seconds: float
    megabytes: float  # most of this process and of the largest worker together, all workers counted


def planned(points: int) -> Plan:
    """A grid of so many points."""
    batches, widths, sizes = SIZES[points]
    energy: dict[str, Any] = {"times": FACTORS}
    fields: dict[str, Any] = {
        "version": 1,
        "name": "benchmark",
        "title": "VGG-small over memories, widths and batches",
        "network": "vgg-small",
        "hardware": ("ascend", "v100"),
        "method": ("fp", "bold"),
        "accounting": "paper",
        "batch": batches,
        "axes": (
            {"accounting.widths.boolean_signal_bits": widths},
            {"hardware.levels.L1.capacity": {"times": FACTORS[:sizes]}},
            {"hardware.levels.L2.capacity": {"times": FACTORS[:sizes]}},
            {
                "hardware.levels.L3.access_energy": energy,
                "hardware.levels.DRAM.access_energy": energy,
            },
        ),
    }
    return plan(SweepFile.model_validate(fields))


def measured(points: int, jobs: int) -> Measured:
    """A sweep from its plan to its table, in a folder that is thrown away."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        command = "hwmodel sweep benchmark"
        run(planned(points), Path(folder) / "t.csv", command, jobs=jobs, progress=_quiet)
        seconds = time.perf_counter() - began
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    worker = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * (jobs if jobs > 1 else 0)
    return Measured(points, seconds, (own + worker) / 1024)


def _quiet(what: str, done: int, total: int) -> None:
    pass


def in_a_process_of_its_own(points: int, jobs: int) -> Measured:
    """The same, with nothing known from before."""
    import subprocess

    words = [sys.executable, __file__, "--one", str(points), str(jobs)]
    out = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()
    return Measured(int(out[0]), float(out[1]), float(out[2]))


def show(what: str, found: Measured) -> None:
    """One line."""
    rate = found.points / found.seconds
    print(
        f"{what:24} {found.points:>8,} points {found.seconds:8.1f} s {rate:8,.0f} points/s "
        + (f"{found.megabytes:8,.0f} MB" if found.megabytes else ""),
        flush=True,
    )


def main() -> None:
    """Measure and print; the load of the machine is told, for others may use it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, nargs="*", choices=SIZES, default=[*SIZES])
    parser.add_argument("--one", type=int, nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(*measured(*arguments.one))
        return
    print(f"cores {os.cpu_count()}, load {', '.join(f'{x:.1f}' for x in os.getloadavg())}")
    block = planned(100_000)
    times = []
    for what in ("cold, without a table", "warm, without a table"):
        began = time.process_time()
        run_part(block, range(1000))
        times.append(time.process_time() - began)
        show(what, Measured(1000, times[-1], 0))
    print(f"warm / cold: {times[0] / times[1]:.1f} times as fast (of the processor's time)")
    pair = [in_a_process_of_its_own(arguments.points[0], jobs) for jobs in (1, 2)]
    for jobs, found in enumerate(pair, start=1):
        show(f"{jobs} process{'es' * (jobs > 1)}", found)
    print(f"2 / 1 processes: {pair[0].seconds / pair[1].seconds:.2f} times as fast")
    scaled = [in_a_process_of_its_own(points, 2) for points in arguments.points]
    for found in scaled:
        show("2 processes", found)
    for few, many in pairwise(scaled):
        print(
            f"{many.points / few.points:.0f} times the points: {many.seconds / few.seconds:.1f} "
            f"times the time, {many.megabytes / few.megabytes:.1f} times the memory"
        )
    print(f"load {', '.join(f'{x:.1f}' for x in os.getloadavg())}")


if __name__ == "__main__":
    main()
