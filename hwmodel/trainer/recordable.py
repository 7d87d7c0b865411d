"""What a recorder is asked and told: arguments, layers that it can follow, numbers of epochs."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

from hwmodel import __version__
from hwmodel.errors import HwmodelError, SpecError
from hwmodel.specs.arguments import quoted
from hwmodel.specs.limits import Limits
from hwmodel.specs.trace import Run
from hwmodel.trainer.recorded import Recorded, levels

__all__ = ["layers_of", "number", "planned", "see_lists"]

UNFOLLOWED = ("OptimizedModule", "ScriptModule", "RecursiveScriptModule", "DataParallel")


def see_lists(types: Any, binary: Any) -> None:
    """See that lists of classes are such. Raises: HwmodelError with all that is wrong."""
    faults = []
    for name, values, kinds, said in (
        ("types", types, type, "a list of classes"),
        ("binary", binary, (type, str), "a list of classes or names of layers"),
    ):
        listed = isinstance(values, Collection) and not isinstance(values, (str, bytes, type))
        if not listed or not all(isinstance(value, kinds) for value in values):
            shown = values if listed or isinstance(values, str) else repr(values)
            faults.append(f"{name} {quoted(shown)}: must be {said}")
    if faults:
        raise HwmodelError(f"record: {'; '.join(faults)}")


def planned(*, recorded_by: str, every: int, **known: Any) -> Run:
    """What is known of the run before it begins. Raises: SpecError with all that is wrong."""
    from hwmodel.specs.files import validate

    if isinstance(known["widths"], Limits):
        known["widths"] = known["widths"].model_dump()
    unknown = dict.fromkeys(
        ("train_images", "test_images", "learning_rate", "adam_rate", "reweighting", "scaling",
         "signal", "logic", "network_digest", "method_digest", "data_digest")
    )  # fmt: skip
    recording = {
        "recorded_by": recorded_by, "every": every, "steps_measured": 1, "overhead": 1.0,
    }  # fmt: skip
    values = {"tool": __version__, "epochs": 1, "frozen": False, "recording": recording}
    return validate(Run, values | unknown | known, "record")


def layers_of(
    model: Any, types: tuple[type, ...], binary: tuple[type | str, ...], error: float
) -> dict[Any, Recorded]:
    """The layers to record. Raises: SpecError with all that cannot be."""
    import torch

    faults, found = [], {}
    latent_types = tuple(b for b in binary if isinstance(b, type))
    modules = dict(model.named_modules())
    unknown = [name for name in binary if isinstance(name, str) and name not in modules]
    faults += [f"binary {quoted(name)} is no layer of the model" for name in unknown]
    for name, module in modules.items():
        kind, shown = type(module).__name__, name or type(module).__name__
        if kind in UNFOLLOWED or getattr(module, "_compiled_call_impl", None) is not None:
            faults.append(f"{shown} is a {kind}, compiled or replicated: record the module inside")
        if not isinstance(module, types):
            own = module.parameters(recurse=False)
            if not isinstance(module, torch.nn.Embedding) and any(p.dim() > 1 for p in own):
                faults.append(f"{shown} is a {kind} with weights, and none of `types`")
            continue
        weight = getattr(module, "weight", None)
        if not isinstance(weight, torch.nn.Parameter) or weight.dim() not in (2, 4):
            faults.append(f"{shown} has no parameter weight of 2 or 4 dimensions")
            continue
        latent = name in binary or isinstance(module, latent_types)
        found[module] = Recorded(shown, weight, "binary" if latent else levels(weight), error)
    if not found and not faults:
        faults = [f"none of its layers is one of {', '.join(t.__name__ for t in types)}"]
    if faults:
        raise SpecError(f"record: {'; '.join(faults)}")
    return found


def number(name: str, value: Any) -> float | None:
    """A number that may be a tensor: the shortest that its precision cannot tell from it.

    A share of 0.9 in float32 is 0.8999999761581421 in float64, and would miss a target of 0.9.

    Raises: HwmodelError for what is no number.
    """
    if value is None:
        return None
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError
        value = value.detach() if hasattr(value, "detach") else value
        found = float(value)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise HwmodelError(f"record: epoch: {name} {quoted(value)}: must be one number") from None
    if not hasattr(value, "dtype") or not math.isfinite(found):
        return found
    told = getattr(value, "new_tensor", None) or value.dtype.type
    shorter = (float(f"{found:.{digits}g}") for digits in range(1, 17))
    return next((one for one in shorter if bool(told(one) == value)), found)
