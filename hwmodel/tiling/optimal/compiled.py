"""Whether the extra `compiled` is installed; its kernels are loaded when a search first asks."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any

__all__ = ["is_compiled", "kernel"]

_switch: list[bool] = []  # what the tests say, in the place of what is installed


def is_compiled() -> bool:
    """Whether searches are compiled."""
    return _switch[-1] if _switch else _is_there()


@cache
def _is_there() -> bool:
    return find_spec("numba") is not None


@cache
def kernel(name: str) -> Callable[..., Any]:
    """Return a compiled function of `kernels`."""
    from hwmodel.tiling.optimal import kernels

    found: Callable[..., Any] = getattr(kernels, name)
    return found
