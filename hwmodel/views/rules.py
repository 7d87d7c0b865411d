"""What a method is, in a sentence: the widths, the arithmetic and the update of its rules."""

from __future__ import annotations

from collections.abc import Iterator

from hwmodel.errors import many
from hwmodel.specs.method import LayerRule, Method, Where
from hwmodel.views.colours import called
from hwmodel.work.problem import PASSES

__all__ = ["method_sentence"]

_WIDTHS = {
    "weights": "weights", "inputs": "inputs", "weight_signal": "gradients of weights",
    "signal": "signals back", "weights_backward": "weights on the way back",
    "inputs_backward": "inputs on the way back", "latent": "latent weights",
}  # fmt: skip


def method_sentence(method: Method) -> str:
    """Say what a method is, rule by rule: the first that fits a layer holds.

    Rules for outputs of layers of single roles are counted, not written out. Names of widths, such
    as full precision, are fields of the accounting.
    """
    rules = [f"products of {_where(one.where)}: {', '.join(_rule(one))}" for one in method.layers]
    rules += [
        f"outputs of {_where(one.where)}: {_bits(one.bits)}, signals {_bits(one.signal)}"
        for one in method.tensors
        if not _of_roles(one.where)
    ]
    if further := sum(_of_roles(one.where) for one in method.tensors):
        rules.append(f"outputs of layers of single roles: {many(further, 'further rule')}")
    rules += [f"sums of {_where(one.where)} kept in {_bits(one.bits)}" for one in method.kept]
    rules += [f"{one.what} behind {_where(one.where)}" for one in method.extra_work]
    rules += [f"without {', '.join(method.omits)}"] if method.omits else []
    rules += [f"optimizer {method.optimizer}"] if method.optimizer else []
    if method.teacher:
        rules.append(f"beside a teacher, {method.teacher.network} under {method.teacher.method}")
    return f"{called(method.name)} ({method.title}): {'; '.join(rules)}."


def _of_roles(where: Where) -> bool:
    return where.role is not None or where.feeds_role is not None


def _rule(rule: LayerRule) -> Iterator[str]:
    if rule.precision:
        yield f"as {called(rule.precision)}"
    for field, words in _WIDTHS.items():
        if (width := getattr(rule, field)) is not None:
            yield f"{words} {_bits(width)}"
    kinds = {pass_: kind for pass_, kind in rule.arithmetic.items()}
    if len(set(kinds.values())) == 1 and len(kinds) == len(PASSES):
        yield f"{next(iter(kinds.values()))} in every pass"
    else:
        yield from (f"{kind} {pass_.replace('_', ' ')}" for pass_, kind in kinds.items())
    if rule.update:
        yield "flipped by votes" if rule.update == "boolean" else "stepped by an optimizer"
    if rule.optimizer:
        yield f"optimizer {rule.optimizer}"


def _bits(width: float | str) -> str:
    return width.replace("_", " ") if isinstance(width, str) else f"{width:g} bit"


def _where(where: Where) -> str:
    """Name the layers of a rule; all that no rule before it has."""
    stated = where.model_dump(exclude_none=True)
    found = [f"{name.replace('_', ' ')} {_listed(value)}" for name, value in stated.items()]
    return f"layers of {', '.join(found)}" if found else "all layers"


def _listed(value: bool | str | tuple[str, ...]) -> str:
    if isinstance(value, str):
        return value
    return ("no", "yes")[value] if isinstance(value, bool) else " or ".join(value)
