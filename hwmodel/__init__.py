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
    from hwmodel.importers.onnx import from_onnx
    from hwmodel.importers.torch import from_torch
    from hwmodel.model.compare import compare
    from hwmodel.model.evaluate import evaluate
    from hwmodel.model.generate import generate
    from hwmodel.model.report import Report
    from hwmodel.trainer.record import record
    from hwmodel.views.drawing import plot

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
    "generate",
    "plot",
    "record",
]


def __dir__() -> list[str]:
    """List the names of `__getattr__`, too, so that an interactive shell completes them."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    """Import a public name on its first use, if its module takes long to import."""
    if name == "compare":
        from hwmodel.model.compare import compare

        return compare
    if name in ("Report", "evaluate"):
        from hwmodel.model import evaluate

        return getattr(evaluate, name)
    if name == "generate":
        from hwmodel.model.generate import generate

        return generate
    if name == "from_onnx":
        from hwmodel.importers.onnx import from_onnx

        return from_onnx
    if name == "from_torch":
        from hwmodel.importers.torch import from_torch

        return from_torch
    if name == "plot":
        from hwmodel.views.drawing import plot

        return plot
    if name == "record":
        from hwmodel.trainer.record import record

        return record
    raise AttributeError(f"module 'hwmodel' has no attribute {name!r}")
