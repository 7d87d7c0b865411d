"""The bundled networks by every method over several seeds: a table of test accuracies.

    OPENBLAS_NUM_THREADS=1 python benchmarks/trainer_accuracy.py [seeds] [network ...]

Every accuracy is that after the last epoch; none is chosen by looking at the test images.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from hwmodel.importers.load import load_network
from hwmodel.specs.files import load
from hwmodel.specs.method import Method
from hwmodel.trainer.data import Dataset, load_dataset
from hwmodel.trainer.train import Settings, train

DATA = {"deep-mlp": "digits", "conv-small": "digits", "conv-mnist": "mnist-5k"}
METHODS = (
    "bold", "bold, frozen", "bold-8", "bold-1-1-16", "bold-bn", "binarynet", "binaryconnect", "fp",
)  # fmt: skip


def accuracies(network: str, method: str, data: Dataset, seeds: int) -> list[float]:
    """Test accuracy of every seed [%]."""
    name, _, frozen = method.partition(", ")
    reached = []
    for seed in range(seeds):
        settings = Settings(
            load_network(network), load(Method, name), seed=seed, freeze=bool(frozen)
        )
        reached.append(100 * train(settings, data).epochs[-1].accuracy)
    return reached


def main(seeds: int, networks: list[str]) -> None:
    """Print one row a network and method as soon as it is known."""
    print("| network | method | mean | deviation | lowest | highest | s a run |")
    print("|---|---|---|---|---|---|---|")
    for network in networks:
        data = load_dataset(DATA[network])
        for method in METHODS:
            start = time.perf_counter()
            reached = accuracies(network, method, data, seeds)
            seconds = (time.perf_counter() - start) / seeds
            spread = np.std(reached, ddof=1) if seeds > 1 else 0.0
            numbers = (np.mean(reached), spread, min(reached), max(reached), seconds)
            print(f"| {network} | {method} |", " | ".join(f"{x:.1f}" for x in numbers), "|")
            sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 5, sys.argv[2:] or list(DATA))
