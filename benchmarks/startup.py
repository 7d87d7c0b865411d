"""Whole commands against a bare interpreter: how much of their time is hwmodel's own.

    python benchmarks/startup.py

Each command runs in a fresh process, in turn with `python -c pass`, and the medians and their
ratio are printed. Ratios, because machines differ; nothing here passes or fails.
"""

from __future__ import annotations

import subprocess
import sys
import time
from statistics import median

RUNS = 7
MAIN_JOB = (
    "compare vgg-small --hardware ascend,v100 "
    "--methods fp,binaryconnect,xnor-net,binarynet,bold,bold-bn --accounting paper --csv -"
)
COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import numpy": ["-c", "import numpy"],
    "hwmodel --help": ["-m", "hwmodel", "--help"],
    "hwmodel compare (main job)": ["-m", "hwmodel", *MAIN_JOB.split()],
}


def seconds(arguments: list[str]) -> float:
    """Wall time of one fresh process [s]."""
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    return time.perf_counter() - start


def main() -> None:
    """Print the table."""
    taken: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(RUNS):
        for name, arguments in COMMANDS.items():
            taken[name].append(seconds(arguments))
    bare = median(taken["python -c pass"])
    print(f"{'command':28} {'median s':>9} {'times bare python':>18}")
    for name, times in taken.items():
        print(f"{name:28} {median(times):9.3f} {median(times) / bare:18.1f}")


if __name__ == "__main__":
    main()
