"""Time and memory of Boolean layers beside the plain forms of the same computation.

Everything is measured in this process, one form after another, and shown as ratios: absolute
times say more about a machine than about a program. Run with one thread,

    OPENBLAS_NUM_THREADS=1 python benchmarks/trainer.py

and see whether every ratio keeps its bound; the exit code is 1 where one does not.
"""

from __future__ import annotations

import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwmodel.trainer.bits import Logic, Signs, signs, xnor_sums
from hwmodel.trainer.kernels import compiled_sums
from hwmodel.trainer.layers import BoolConv, BoolLinear
from hwmodel.trainer.optim import adam_step, boolean_step
from hwmodel.trainer.real import Conv, Linear
from hwmodel.trainer.weights import Reals
from hwmodel.trainer.windows import Window

MIB = 2**20


class Case(NamedTuple):
    """A layer, Boolean and real, of one shape, and what is put in.

    Attributes:
        x: truth values.
        rows: the same as rows of the equivalent matrix product; one plain form needs them.
    """

    name: str
    boolean: BoolLinear | BoolConv
    real: Linear | Conv
    x: Logic
    rows: Logic


class Form(NamedTuple):
    """What one way of computing cost: the shortest time [s], and the most memory at a time [B]."""

    seconds: float
    peak: int


def linear(batch: int, m: int, n: int) -> Case:
    """`batch` rows of m inputs to n neurons."""
    rng = np.random.default_rng(0)
    x = rng.random((batch, m)) < 0.5
    return Case(f"{batch} x {m} x {n}", BoolLinear(m, n, rng), Linear(m, n, rng, bias=True), x, x)


def conv(images: int, channels: int, outs: int, rows: int) -> Case:
    """3 x 3 windows over images of rows x rows pixels, with F outside."""
    rng = np.random.default_rng(0)
    window = Window(3, 1, 1)
    x = rng.random((images, rows, rows, channels)) < 0.5
    return Case(
        f"{images} x ({channels} -> {outs}, 3 x 3, {rows} x {rows})",
        BoolConv(channels, outs, window, rng, padding="false"),
        Conv(channels, outs, window, rng, bias=True),
        x,
        window.rows(window.pad(x, False)),
    )


def measured(way: Callable[[], object], budget: float = 2.0) -> Form:
    """The least of several times within about `budget` seconds, and the peak of one more call."""
    way()
    times: list[float] = []
    begin = time.perf_counter()
    while not times or (time.perf_counter() - begin < budget and len(times) < 30):
        start = time.perf_counter()
        way()
        times.append(time.perf_counter() - start)
    tracemalloc.start()
    way()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return Form(min(times), peak)


def broadcasting(x: Logic, w: Logic) -> NDArray[np.int64]:
    """Agreements minus disagreements, by comparing every row with every weight at once."""
    differ: NDArray[np.int64] = (x[:, None, :] ^ w[None, :, :]).sum(2)
    sums: NDArray[np.int64] = x.shape[1] - 2 * differ
    return sums


def forward(case: Case) -> dict[str, Form]:
    """Every way from truth values to sums. The matrix product is given its signs ready made."""
    layer, w, x = case.boolean, case.boolean.boolean[0].values, signs(case.x)
    expected = layer.forward(case.x)
    ways: dict[str, Callable[[], Any]] = {
        "broadcasting": lambda: broadcasting(case.rows, w),
        "product": lambda: case.real.forward(x),
        "words": lambda: layer.by_words(xnor_sums),
        "default": lambda: layer.forward(case.x),
    }
    if isinstance(case.real, Linear):
        signed = layer.boolean[0].signs.T
        ways["product"] = lambda: x @ signed
    if find_spec("numba"):
        ways["compiled"] = lambda: layer.by_words(compiled_sums)
    for name in ways.keys() - {"product"}:
        assert (ways[name]().ravel() == expected.ravel()).all(), name
    return {name: measured(way) for name, way in ways.items()}


def plain_backward(z: Reals, x: Signs, w: Signs) -> tuple[Reals, Reals]:
    """Votes and signal by broadcasting, a row at a time: all at once does not fit a memory."""
    votes, sent = np.zeros_like(w), np.empty_like(x)
    for k in range(len(x)):
        votes += z[k, :, None] * x[k, None, :]
        sent[k] = (z[k, :, None] * w).sum(0)
    return votes, sent


def backward(case: Case) -> dict[str, Form]:
    """Votes and the signal upstream, from a real signal."""
    layer, real = case.boolean, case.real
    s = layer.forward(case.x)
    real.forward(signs(case.x))
    z = np.random.default_rng(1).standard_normal(s.shape, np.float32)
    rows, w, flat = signs(case.rows), layer.boolean[0].signs, z.reshape(-1, s.shape[-1])
    return {
        "broadcasting": measured(lambda: plain_backward(flat, rows, w), budget=0),
        "product": measured(lambda: real.backward(z)),
        "default": measured(lambda: layer.backward(z)),
    }


def step(case: Case) -> dict[str, Form]:
    """Forward, backward and optimizer, Boolean and real."""
    layer, real, x = case.boolean, case.real, signs(case.x)
    shape = layer.forward(case.x).shape
    z = np.random.default_rng(1).standard_normal(shape, np.float32) * np.float32(1e-3)

    def boolean() -> None:
        layer.forward(case.x)
        layer.backward(z)
        boolean_step(layer.boolean, 1.0)

    def floating() -> None:
        real.forward(x)
        real.backward(z)
        adam_step(real.real, 1e-3)

    return {"product": measured(floating), "default": measured(boolean)}


def judged(passes: dict[str, dict[str, Form]]) -> Iterator[tuple[str, float, str, float]]:
    """Ratios with a bound: what, the ratio, the side on which it must be, the bound."""
    ahead, back, whole = passes["forward"], passes["backward"], passes["step"]
    plain, product, default = (ahead[x] for x in ("broadcasting", "product", "default"))
    yield "forward: broadcasting / default", plain.seconds / default.seconds, ">=", 15
    yield "forward: words / product", ahead["words"].seconds / product.seconds, "<=", 1.5
    if "compiled" in ahead:
        yield "forward: product / compiled", product.seconds / ahead["compiled"].seconds, ">=", 4
    yield "forward memory: broadcasting / default", plain.peak / default.peak, ">=", 50
    faster = back["broadcasting"].seconds / back["default"].seconds
    yield "backward: broadcasting / default", faster, ">=", 8
    yield (
        "backward: default / product",
        back["default"].seconds / back["product"].seconds,
        "<=",
        1.3,
    )
    yield "step: Boolean / real", whole["default"].seconds / whole["product"].seconds, "<=", 1.3


def main() -> int:
    """Measure, print, judge."""
    failed = 0
    for case in (linear(128, 1024, 1024), linear(256, 4096, 1024), conv(64, 128, 128, 16)):
        passes = {"forward": forward(case), "backward": backward(case), "step": step(case)}
        print(f"\n{case.name}")
        for name, forms in passes.items():
            for form, cost in forms.items():
                print(
                    f"  {name:9} {form:13} {cost.seconds * 1e3:9.2f} ms {cost.peak / MIB:9.2f} MiB"
                )
        for what, ratio, side, bound in judged(passes):
            good = ratio >= bound if side == ">=" else ratio <= bound
            failed += not good
            print(f"  {what:40} {ratio:8.2f} {side} {bound:<4} {'' if good else 'MISSED'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
