"""What a run leaves for others to read: its weights, packed, and its curves as a table."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hwmodel.specs.files import write
from hwmodel.specs.trace import Trace
from hwmodel.trainer.bits import pack_bytes
from hwmodel.trainer.nets import Net
from hwmodel.trainer.real import BatchNorm

__all__ = ["curves", "write_curves", "write_weights"]


def write_weights(net: Net, path: Path) -> None:
    """Write all weights as NumPy arrays, whole or not at all.

    `LAYER/weight` of weights that flip, and of the signs of latent ones, is packed
    [M, ceil(m / 8)] bytes, lowest bit first, T = +1 = 1, with m in `LAYER/inputs`; a row is in the
    order rows of the window, columns, channels. Others are float32 [M, m]. Beside them stand
    `LAYER/bias`, and `LAYER/scale`, `shift`, `mean` and `variance` of a batch norm.
    """
    arrays: dict[str, NDArray[Any]] = {}
    for node in net.nodes:
        layer, name = node.layer, node.name
        if isinstance(layer, BatchNorm):
            held = {"scale": layer.real[0].value, "shift": layer.real[1].value}
            held |= {"mean": layer.mean, "variance": layer.variance}
            arrays |= {f"{name}/{what}": value for what, value in held.items()}
            continue
        for what, weights in zip(("weight", "bias"), layer.boolean, strict=False):
            arrays |= _packed(f"{name}/{what}", weights.values)
        for what, real in zip(("weight", "bias"), layer.real, strict=False):
            latent = what == "weight" and getattr(layer, "binary", False)
            whole = {f"{name}/{what}": real.value}
            arrays |= _packed(f"{name}/{what}", real.value >= 0) if latent else whole
    packed = io.BytesIO()
    np.savez(packed, allow_pickle=False, **arrays)
    write(path, packed.getvalue())


def _packed(name: str, values: NDArray[np.bool_]) -> dict[str, NDArray[Any]]:
    inputs = np.int64(values.shape[1])
    return {name: pack_bytes(values), f"{name.removesuffix('/weight')}/inputs": np.asarray(inputs)}


def curves(trace: Trace) -> str:
    """The epochs as comma-separated values: loss [nat], accuracies and flip rates [share]."""
    flipping = [
        (place, shape.name)
        for place, shape in enumerate(trace.layers)
        if any(epoch.layers[place].flip_rate is not None for epoch in trace.epochs)
    ]
    told = ("epoch", "steps", "loss", "train_accuracy", "validation_accuracy", "accuracy")
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow([*told, *(f"flip_rate_{name}" for _, name in flipping)])
    for epoch in trace.epochs:
        rates = [epoch.layers[place].flip_rate for place, _ in flipping]
        table.writerow([*(getattr(epoch, what) for what in told), *rates])
    return text.getvalue()


def write_curves(trace: Trace, path: Path) -> None:
    """Write `curves`, whole or not at all."""
    write(path, curves(trace).encode())
