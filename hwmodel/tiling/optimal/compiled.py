"""Whether the extra `compiled` is installed; its kernels are loaded when a search first asks."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any

from hwmodel.tiling.effort import effort

__all__ = ["is_compiled", "kernel"]

_called: dict[str, Callable[..., Any]] = {}  # functions that are compiled by now
_switch: list[bool] = []  # what the tests say, in the place of what is installed


def is_compiled() -> bool:
    """Whether searches are compiled."""
    return _switch[-1] if _switch else _is_there()


@cache
def _is_there() -> bool:
    return find_spec("numba") is not None


def kernel(name: str) -> Callable[..., Any]:
    """Return a compiled function of `kernels`, which the first call compiles, unless it is kept.

    Args:
        name: of the function; those of memories side by side begin with "spatial.", of
            their chains as rows with "chains.", of relaxed programmes with "newton.".
    """
    return _called.get(name) or _first(name)


@cache
def _first(name: str) -> Callable[..., Any]:
    """Return a function of `kernels`, of whose first call it is said that it may compile."""
    from hwmodel.tiling.optimal import kernels
    from hwmodel.tiling.spatial import chain_kernels, newton_kernels
    from hwmodel.tiling.spatial import kernels as side_by_side

    *kind, called = name.split(".")
    several = {"spatial": side_by_side, "chains": chain_kernels, "newton": newton_kernels}
    found: Callable[..., Any] = getattr(several[kind[0]] if kind else kernels, called)

    def first(*given: Any) -> Any:
        effort.compiling, began = is_compiled(), time.monotonic()
        try:
            return found(*given)
        finally:
            effort.compiling = False
            effort.compiled += time.monotonic() - began
            _called[name] = found

    return first
