"""hwmodel: the energy of a network on a chip, under a method's arithmetic, layer by layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hwmodel.errors import (
    DataError,
    HwmodelError,
    Infeasible,
    NameUnknown,
    ShapeError,
    SpecError,
    TooLarge,
)

if TYPE_CHECKING:
    from hwmodel.comparison import compare
    from hwmodel.evaluation import Report, evaluate
    from hwmodel.importers.onnx import from_onnx
    from hwmodel.importers.torch import from_torch

__version__ = "0.1.0.dev0"
__all__ = [
    "DataError",
    "HwmodelError",
    "Infeasible",
    "NameUnknown",
    "Report",
    "ShapeError",
    "SpecError",
    "TooLarge",
    "compare",
    "evaluate",
    "from_onnx",
    "from_torch",
]

_HOMES = {
    "Report": "evaluation",
    "compare": "comparison",
    "evaluate": "evaluation",
    "from_onnx": "importers.onnx",
    "from_torch": "importers.torch",
}


def __dir__() -> list[str]:
    """With the names of `__getattr__`, so that an interactive shell completes them."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    """Public names whose modules take long to import, on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'hwmodel' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"hwmodel.{_HOMES[name]}"), name)
