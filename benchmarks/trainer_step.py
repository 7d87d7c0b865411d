"""A Boolean step at signals of 8 bit beside the full-precision step of the same network.

    OPENBLAS_NUM_THREADS=1 python benchmarks/trainer_step.py [--plain]

Forward pass, loss, backward pass and update, without what is measured on the way. Both networks
have the same pools and a first layer that sends nothing. Thread time, medians of steps by turns in
one process, so that a busy moment hits both. `--plain` does without numba. The exit code is 1
where a ratio is above its bound.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from statistics import median

import numpy as np

from hwmodel.importers.load import load_network
from hwmodel.specs.files import load
from hwmodel.specs.method import Method
from hwmodel.specs.training import Recipe
from hwmodel.trainer.nets import Net, build, logits_signal
from hwmodel.trainer.optim import adam_step, boolean_step
from hwmodel.trainer.stack import stack

BATCH = 32
STEPS = 35
BOUNDS = {False: 0.6, True: 1.15}  # compiled, plain


def step(network: str, method: str) -> Callable[[], None]:
    """One step of training, as a function."""
    rules = load(Method, method)
    found = load_network(network)
    net = build(stack(found, rules), Recipe(), BATCH, 0, rules.widths)
    rng = np.random.default_rng(0)
    C, H, W = found.input
    images = rng.standard_normal((BATCH, H, W, C), np.float32)
    labels = np.arange(BATCH) % 10

    def run() -> None:
        _, z = logits_signal(net.forward(images, training=True), labels)
        net.backward(z)
        update(net)

    return run


def update(net: Net) -> None:
    """Adam for what is real, flips for what is Boolean."""
    for node in net.nodes:
        adam_step(node.layer.real, 1e-3)
        if node.layer.boolean:
            limiter = net.limiters.get(f"{node.name}/vote")
            votes = node.layer.boolean[0].votes
            node.layer.boolean[0].votes = limiter(votes) if limiter else votes
            boolean_step(node.layer.boolean, 12, net.memory)


def main(plain: bool) -> int:
    """Measure, print, judge."""
    failed = 0
    if plain:
        sys.modules["numba"] = None  # type: ignore[assignment]
        import importlib.util

        found = importlib.util.find_spec
        for module in ("kernels", "pooled", "events"):
            place = sys.modules[f"hwmodel.trainer.{module}"]
            vars(place)["find_spec"] = lambda name: None if name == "numba" else found(name)
    for network in ("conv-mnist", "conv-small"):
        steps = {name: step(network, name) for name in ("fp", "bold-8")}
        times: dict[str, list[float]] = {name: [] for name in steps}
        for turn in range(STEPS + 5):
            for name, run in steps.items():
                start = time.thread_time()
                run()
                if turn >= 5:
                    times[name].append(1e3 * (time.thread_time() - start))
        real, boolean = (median(times[name]) for name in ("fp", "bold-8"))
        good = boolean / real <= BOUNDS[plain]
        failed += not good
        print(
            f"{network}: Boolean {boolean:.2f} ms, real {real:.2f} ms: {boolean / real:.2f} <= "
            f"{BOUNDS[plain]} {'' if good else 'MISSED'}"
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main("--plain" in sys.argv[1:]))
