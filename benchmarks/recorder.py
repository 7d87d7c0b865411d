"""What recording a PyTorch loop costs: time of its steps with a recorder over that without.

Thread time of one thread, loops with and without a recorder by turns so that a busy moment hits
both, the least of several. Run

    OMP_NUM_THREADS=1 python benchmarks/recorder.py

The exit code is 1 where a ratio is above its bound. Needs the extra `torch`.
"""

from __future__ import annotations

import sys
import time
from itertools import pairwise
from typing import Any

import torch
from torch import nn

import hwmodel

TURNS = 3
RANGES = 10**6  # of so many steps one is measured: ranges and flips alone, but for the first
BOUNDS = {  # of a step of 2 to 3 ms Python's own time shows
    ("cnn", RANGES): 1.3, ("cnn", 100): 1.5, ("mlp", RANGES): 1.6, ("mlp", 100): 1.8,
}  # fmt: skip


def binary(inputs: int, outputs: int) -> list[nn.Module]:
    """A layer whose weights are followed as latent ones, and its activation."""
    return [nn.Linear(inputs, outputs, bias=False), nn.Hardtanh()]


def mlp() -> tuple[nn.Module, Any]:
    """Four layers of 256 neurons, 64 rows."""
    inner = [module for _ in range(4) for module in binary(256, 256)]
    return nn.Sequential(nn.Linear(64, 256), nn.ReLU(), *inner, nn.Linear(256, 10)), (64, 64)


def cnn() -> tuple[nn.Module, Any]:
    """Convolutions of 32 to 64 channels on 32 x 32 pixels, 16 images."""
    layers: list[nn.Module] = []
    channels = [3, 32, 64]
    for before, after in pairwise(channels):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(64 * 64, 10)), (16, 3, 32, 32)


def loop(model: Any, shape: Any, steps: int) -> float:
    """Thread time of some steps of training [s]."""
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x, y = torch.randn(shape), torch.arange(shape[0]) % 10
    start = time.thread_time()
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    return time.thread_time() - start


def factor(make: Any, every: int, steps: int) -> tuple[float, float, float]:
    """Milliseconds of a step without a recorder, the factor, and the one that the trace states."""
    model, shape = make()
    latent = [name for name, m in model.named_modules() if isinstance(m, nn.Linear)][1:-1]
    loop(model, shape, 3)
    without, recorded, stated = [], [], []
    for _ in range(TURNS):
        without.append(loop(model, shape, steps))
        with hwmodel.record(model, method="fp", every=every, binary=latent) as recorder:
            loop(model, shape, 1)  # the first step of an epoch is measured
            recorded.append(loop(model, shape, steps))
            recorder.epoch(loss=0, accuracy=0)
        recording = recorder.trace().run.recording
        assert recording is not None
        stated.append(recording.overhead)
    return 1e3 * min(without) / steps, min(recorded) / min(without), min(stated)


def main() -> int:
    """Measure, print, judge."""
    torch.set_num_threads(1)
    failed = 0
    for name, make, steps in (("mlp", mlp, 100), ("cnn", cnn, 20)):
        for every in (1, 10, 100, RANGES):
            n = min(steps, 10 * every)
            base, ratio, stated = factor(make, every, n)
            most = BOUNDS.get((name, every))
            good = most is None or ratio <= most
            failed += not good
            bound = f"<= {most}" if most else ""
            shown = "ranges" if every == RANGES else f"every {every}"
            print(
                f"{name} of {base:6.1f} ms a step, {shown:9}: x {ratio:5.2f} {bound:6} "
                f"(stated {stated:5.2f}) {'' if good else 'MISSED'}"
            )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
