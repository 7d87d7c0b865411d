"""How fast the optimal tiling search is, and what it finds: `python benchmarks/tiling.py`.

Every distinct convolution and matrix product of three networks, in all three passes, at several
batch sizes and widths, on two chips or others; or, with `--hard 7`, each seventh of the hard layers
of `hard_layers.py`, with loops as one that nothing couples.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import resource
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from hard_layers import cases as hard

from hwmodel.specs.files import load
from hwmodel.specs.hardware import Hardware
from hwmodel.tiling.accesses import traffic
from hwmodel.tiling.level_by_level import level_by_level
from hwmodel.tiling.optimal.search import Certificate, Optimum, Options, optimal
from hwmodel.tiling.options import SearchOptions, memories
from hwmodel.tiling.pricing import memory_energy
from hwmodel.tiling.spatial.mapper import mapped
from hwmodel.work.flattening import without
from hwmodel.work.problem import Extents, Problem, Widths, Window

WIDTHS = {"32 bit": Widths(32, 32, 32), "1 bit": Widths(1, 1, 1)}
PASSES = ("forward", "backward-input", "backward-weight")


class Conv(NamedTuple):
    """A convolution: ifmap H x H with C channels, M filters K x K; H = K = 1 is a linear layer."""

    name: str
    C: int
    M: int
    H: int = 1
    K: int = 1
    stride: int = 1
    pad: int = 0
    rows: int = 1  # of a matrix product, per image
    groups: int = 1  # products an image, nothing shared between images


VGG_SMALL = (
    Conv("conv1", 3, 128, 32, 3, 1, 1),
    Conv("conv2", 128, 128, 32, 3, 1, 1),
    Conv("conv3", 128, 256, 16, 3, 1, 1),
    Conv("conv4", 256, 256, 16, 3, 1, 1),
    Conv("conv5", 256, 512, 8, 3, 1, 1),
    Conv("conv6", 512, 512, 8, 3, 1, 1),
    Conv("fc1", 8192, 1024),
    Conv("fc2", 1024, 1024),
    Conv("fc3", 1024, 10),
)
RESNET18 = (
    Conv("conv1", 3, 64, 224, 7, 2, 3),
    Conv("l1_3x3", 64, 64, 56, 3, 1, 1),
    Conv("l2_s2", 64, 128, 56, 3, 2, 1),
    Conv("l2_ds", 64, 128, 56, 1, 2),
    Conv("l2_3x3", 128, 128, 28, 3, 1, 1),
    Conv("l3_s2", 128, 256, 28, 3, 2, 1),
    Conv("l3_ds", 128, 256, 28, 1, 2),
    Conv("l3_3x3", 256, 256, 14, 3, 1, 1),
    Conv("l4_s2", 256, 512, 14, 3, 2, 1),
    Conv("l4_ds", 256, 512, 14, 1, 2),
    Conv("l4_3x3", 512, 512, 7, 3, 1, 1),
    Conv("fc", 512, 1000),
)
BERT_BASE = (
    Conv("attention_in_out", 768, 768, rows=128),
    Conv("mlp_in", 768, 3072, rows=128),
    Conv("mlp_out", 3072, 768, rows=128),
    Conv("scores", 64, 128, rows=128, groups=12),
    Conv("mix", 128, 64, rows=128, groups=12),
)
NETWORKS = {"vgg-small": VGG_SMALL, "resnet18": RESNET18, "bert-base": BERT_BASE}


def problem(conv: Conv, batch: int, phase: str, bits: Widths) -> Problem:
    """The loop nest of one pass over a batch."""
    groups = conv.groups * batch if conv.groups > 1 else 1
    n = conv.rows * (1 if conv.groups > 1 else batch)
    out = (conv.H + 2 * conv.pad - conv.K) // conv.stride + 1
    if phase == "forward":
        window = Window(conv.H, conv.stride, 1, conv.pad, conv.pad)
        extent = Extents(n, conv.M, conv.C, out, out, conv.K, conv.K)
    elif phase == "backward-input":
        turned = conv.K - 1 - conv.pad
        window = Window(out, 1, 1, turned, turned, conv.stride)
        extent = Extents(n, conv.C, conv.M, conv.H, conv.H, conv.K, conv.K)
    else:
        window = Window(conv.H, 1, conv.stride, conv.pad, conv.pad)
        extent = Extents(conv.C, conv.M, n, conv.K, conv.K, out, out)
    return Problem(extent, window, window, bits, groups)


def cases(networks: list[str], batches: list[int]) -> Iterator[tuple[dict[str, Any], Problem]]:
    """Every case with what it is called; the first layer has no input gradient."""
    for network, batch, phase in itertools.product(networks, batches, PASSES):
        for i, conv in enumerate(NETWORKS[network]):
            if i == 0 and phase == "backward-input" and network != "bert-base":
                continue
            for width, bits in WIDTHS.items():
                label = {"network": network, "layer": conv.name, "batch": batch, "pass": phase}
                yield label | {"width": width}, problem(conv, batch, phase, bits)


def measured(case: Problem, chip: Hardware, options: Options) -> dict[str, Any]:
    """One search: how long it took, what it proved, and what the greedy search would cost."""
    hardware = memories(chip)
    begun = time.process_time()
    if hardware.spatial:
        return spread(case, chip, options, begun)
    found: Optimum = optimal(case, hardware, options)
    seconds = time.process_time() - begun
    greedy = traffic(case, level_by_level(case, hardware), "exact", options.rule)
    sums, transfers = options.partial_sum_bits, options.transfers
    greedy_energy = memory_energy(case, greedy, hardware, sums, transfers)
    certificate = found.certificate
    return row(seconds, chip, certificate, certificate.energy / greedy_energy)


def spread(case: Problem, chip: Hardware, options: Options, begun: float) -> dict[str, Any]:
    """One search on a chip with memories side by side, which has no greedy one."""
    asked = SearchOptions(
        search="optimal",
        stationary=options.stationary,
        counting="exact",
        rows="touched",
        padding="skipped",
        partial_sum_bits=options.partial_sum_bits,
        transfers=options.transfers,
    )
    _, certificate = mapped(case, memories(chip), asked)
    return row(time.process_time() - begun, chip, certificate, float("nan"))


def row(seconds: float, chip: Hardware, certificate: Certificate, ratio: float) -> dict[str, Any]:
    """What is said of a search."""
    return {
        "milliseconds": round(1000 * seconds, 3),  # of CPU time, one thread
        "energy": certificate.energy,
        "unit": chip.energy_unit,
        "gap": certificate.gap,
        "proved": certificate.proved,
        "examined": certificate.examined,
        "space": certificate.space,
        "ratio_to_level_by_level": ratio,
    }


def main() -> None:
    """Run the benchmark, print its summary, write its rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", nargs="+", default=list(NETWORKS), choices=list(NETWORKS))
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 16, 256])
    parser.add_argument("--chips", nargs="+", default=["ascend", "v100"])
    parser.add_argument("--stationary", default="filter", choices=["filter", "best"])
    parser.add_argument("--transfers", default="upper", choices=["upper", "both"])
    parser.add_argument("--hard", type=int, help="each so-many-th of the hard layers, instead")
    parser.add_argument("--csv", type=Path, help="write one row a search here")
    given = parser.parse_args()
    options, rows = Options(stationary=given.stationary, transfers=given.transfers), []
    for chip in given.chips:
        hardware = load(Hardware, chip)
        listed = cases(given.networks, given.batches)
        if given.hard:
            one = without("flattened", hardware.told_apart)
            listed = (({"network": "hard"} | label, case) for label, case in hard(given.hard, one))
        for label, case in listed:
            rows.append(label | {"chip": chip} | measured(case, hardware, options))
            if not rows[-1]["proved"]:
                print("not proved:", rows[-1], file=sys.stderr)
    if given.csv:
        with given.csv.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    networks = ["hard"] if given.hard else given.networks
    for chip, network in itertools.product(given.chips, networks):
        summary([r for r in rows if r["chip"] == chip and r["network"] == network])
    against_exhaustive()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory {peak:.0f} MB")


def against_exhaustive() -> None:
    """How much faster than trying all integer tile chains in NumPy, where that ends."""
    judge = import_module("tests.exhaustive")  # of the repository, not of the package
    hardware = memories(chip := load(Hardware, "ascend"))
    case = Problem(Extents(6, 8, 8, 1, 1, 1, 1), Window(1), Window(1), Widths(2**15, 2**15, 2**15))
    begun = time.process_time()
    judged = judge.least_energy(case, hardware, Options())
    middle = time.process_time()
    found = optimal(case, hardware).certificate
    end = time.process_time()
    print(
        f"exhaustive, {found.space} tilings: {1000 * (middle - begun):.0f} ms against "
        f"{1000 * (end - middle):.1f} ms, ratio {(middle - begun) / (end - middle):.0f}; "
        f"energies {judged[0]:.6g} and {found.energy:.6g} {chip.energy_unit}"
    )


def summary(rows: list[dict[str, Any]]) -> None:
    """One line: how many, how fast, how many proved, how much below the greedy search."""
    times = np.array([row["milliseconds"] for row in rows])
    gaps = [row["gap"] for row in rows]
    ratios = np.array([row["ratio_to_level_by_level"] for row in rows])
    median, p99 = np.percentile(times, [50, 99])
    print(
        f"{rows[0]['chip']:8} {rows[0]['network']:10} {len(rows):4} searches  median {median:7.1f} "
        f"p99 {p99:7.1f}  max {times.max():7.1f} ms, in all "
        f"{times.sum() / 1000:.1f} s  proved "
        f"{np.mean([row['proved'] for row in rows]):.1%}, gaps: median "
        f"{np.median(gaps):.1%}, to {max(gaps):.1%}  "
        f"energy / level-by-level: median {np.median(ratios):.3f}, max {ratios.max():.3f}"
    )


if __name__ == "__main__":
    main()
