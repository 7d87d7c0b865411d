"""Recognises the function that a chain of elementary operators computes, by computing it.

Exporters write GELU, Swish, layer norm and their like as a dozen elementary operators, in an order
that differs from tool to tool and from version to version. Rather than compare graphs, the chain
is evaluated on a few rows of numbers and the result compared with that of every known function.
"""

from __future__ import annotations

from collections.abc import Callable
from math import erf
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["BINARY", "ROWS", "UNARY", "Samples", "recognised"]

Samples = NDArray[np.float64]

# Rows of features, their means off zero; both tails of every function are reached.
ROWS: Samples = np.linspace(-6.3, 7.1, 48).reshape(8, 6).T.copy()
ROWS[0, 0] = 0.37
_erf: Callable[[Any], Any] = np.vectorize(erf, otypes=[np.float64])


def _mean(x: Samples) -> Samples:
    mean: Samples = np.mean(x, axis=-1, keepdims=True)
    return mean


def _sigmoid(x: Samples) -> Samples:
    y: Samples = 1 / (1 + np.exp(-x))
    return y


UNARY: dict[str, Callable[[Samples], Samples]] = {
    "Abs": np.abs,
    "Erf": _erf,
    "Exp": np.exp,
    "HardSigmoid": lambda x: np.clip(0.2 * x + 0.5, 0, 1),
    "Log": np.log,
    "Neg": np.negative,
    "Reciprocal": np.reciprocal,
    "Rsqrt": lambda x: 1 / np.sqrt(x),
    "Sigmoid": _sigmoid,
    "Softplus": lambda x: np.log1p(np.exp(x)),
    "Sqrt": np.sqrt,
    "Tanh": np.tanh,
    "ReduceMax": lambda x: np.max(x, axis=-1, keepdims=True),
    "ReduceMean": _mean,
    "ReduceSum": lambda x: np.sum(x, axis=-1, keepdims=True),
}
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
    "Pow": np.power,
    "Max": np.maximum,
    "Min": np.minimum,
}


def _known() -> dict[str, Samples]:
    x = ROWS
    centred = x - _mean(x)
    shifted = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return {
        "relu": np.maximum(x, 0),
        "sigmoid": _sigmoid(x),
        "tanh": np.tanh(x),
        "gelu": 0.5 * x * (1 + _erf(x / np.sqrt(2))),
        "gelu (by tanh)": 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
        "gelu (by sigmoid)": x * _sigmoid(1.702 * x),
        "swish": x * _sigmoid(x),
        "hardsigmoid": np.clip(x / 6 + 0.5, 0, 1),
        "hardsigmoid (by fifths)": np.clip(x / 5 + 0.5, 0, 1),
        "hardswish": x * np.clip(x / 6 + 0.5, 0, 1),
        "elu": np.where(x > 0, x, np.expm1(x)),
        "softmax": shifted / np.sum(shifted, axis=-1, keepdims=True),
        "layer-norm": centred / np.sqrt(_mean(centred**2)),
        "rms-norm": x / np.sqrt(_mean(x**2)),
    }


_KNOWN = _known()


def recognised(y: Samples) -> str | None:
    """Name the function that gives `y` on `ROWS`: "gelu", "scale" (by a number), "nothing" …

    None where it is none that is known. An epsilon under a root may be up to 1e-3.
    """
    if y.shape != ROWS.shape or not np.all(np.isfinite(y)):
        return None
    for name, expected in _KNOWN.items():
        if np.allclose(y, expected, rtol=2e-4, atol=2e-4):
            return name.split(" (")[0]
    ratio = y / ROWS
    if np.allclose(ratio, ratio[0, 0]):
        return "nothing" if np.isclose(ratio[0, 0], 1) else "scale"
    if np.allclose(y, np.clip(ROWS, y.min(), y.max())):
        return "hardtanh"
    return None
