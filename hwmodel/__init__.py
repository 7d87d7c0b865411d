"""hwmodel: the energy of a network on a chip, under a method's arithmetic, layer by layer."""

from __future__ import annotations

import sys
from types import ModuleType
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
    from hwmodel.compare import compare
    from hwmodel.evaluate import Report, evaluate

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
]

_HOMES = {"compare": "compare", "evaluate": "evaluate", "Report": "evaluate"}


class _Package(ModuleType):
    """Public names whose modules take long to import, on first use.

    Two functions have the name of the module they live in. An import of the module must not put
    the module in the function's place, whoever imports it and when.
    """

    def __getattr__(self, name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module 'hwmodel' has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(f"hwmodel.{_HOMES[name]}"), name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _HOMES and isinstance(value, ModuleType):
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
