"""The axes of a sweep: the settings of every option on every spec, tried before anything runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product
from typing import Any, NamedTuple

from hwmodel.errors import HwmodelError, SpecError
from hwmodel.graph.network import zoo
from hwmodel.graph.zoo import family_arguments
from hwmodel.model.evaluate import check_run
from hwmodel.specs.mistakes import show
from hwmodel.vary.paths import Inputs, changed, is_known, leaves
from hwmodel.vary.sweep.file import Derived, Times

__all__ = ["SPECS", "Axis", "Setting", "Specs", "axis_of", "fields_of", "with_derived"]

SPECS = ("network", "hardware", "method", "accounting")
Specs = Mapping[str, tuple[Any, ...]]  # by root: the specs, or the plain values


class Setting(NamedTuple):
    """One field set to one value."""

    path: str
    value: Any  # as a file would say it
    shown: Any  # in the unit that `paths.leaves` gives; what stands in the results


class Axis(NamedTuple):
    """Options of which every point takes one."""

    name: str  # a root, or the paths
    length: int
    settings: Mapping[tuple[str, int], tuple[tuple[Setting, ...], ...]]  # of (root, which spec)


def fields_of(root: str, spec: Any) -> dict[str, Any]:
    """Return the values of a spec by path, and the arguments of a bundled network's family."""
    found: dict[str, Any] = {f"{root}.{leaf.path}": leaf.value for leaf in leaves(spec)}
    if root == "network" and spec.name in zoo():
        found |= {f"{root}.{name}": value for name, value in family_arguments(spec.name).items()}
    return found


def axis_of(number: int, axis: Mapping[str, Any], specs: Specs) -> Axis:
    """Make an axis of the file; try every option on every spec. Raises: SpecError."""
    listed = {path: v.times if isinstance(v, Times) else v for path, v in axis.items()}
    length = len(next(iter(listed.values())))
    found: dict[tuple[str, int], tuple[tuple[Setting, ...], ...]] = {}
    for path in axis:
        _refuse_unknown(path, specs)
    for root in dict.fromkeys(path.partition(".")[0] for path in axis):
        mine = [path for path in axis if path.partition(".")[0] == root]
        for index, spec in enumerate(_bases(root, specs)):
            known = [path for path in mine if _is_known(path, spec)]
            if not known:
                raise SpecError(f"axes.{number}: {root} {spec.name} has no {' and no '.join(mine)}")
            options = []
            for i in range(length):
                raw = {path: _as_in_a_file(listed[path][i]) for path in known}
                for path in known:
                    if isinstance(axis[path], Times):
                        raw[path] = _multiple(path, _stated(path, spec), listed[path][i])
                options.append(_tried(f"axes.{number}", root, spec, raw, specs))
            found[root, index] = tuple(options)
    _refuse_twice(number, length, found)
    return Axis(", ".join(axis), length, found)


def _refuse_twice(
    number: int, length: int, found: Mapping[tuple[str, int], tuple[tuple[Setting, ...], ...]]
) -> None:
    """Refuse an axis with the same option twice: its points could not be told apart."""
    roots = dict.fromkeys(root for root, _ in found)
    for specs in product(*([key for key in found if key[0] == root] for root in roots)):
        seen: set[str] = set()
        for i in range(length):
            settings = [setting for key in specs for setting in found[key][i]]
            option = ", ".join(f"{setting.path} {setting.shown}" for setting in settings)
            if option in seen:
                raise SpecError(f"axes.{number}: {option} stands there twice")
            seen.add(option)


def _as_in_a_file(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def with_derived(path: str, derived: Derived, varied: list[Axis], specs: Specs) -> list[Axis]:
    """Add to the axes a field that follows another one. Raises: SpecError."""
    _refuse_unknown(path, specs)
    _refuse_unknown(derived.of, specs)
    root = path.partition(".")[0]
    if root not in SPECS or root != derived.of.partition(".")[0]:
        raise SpecError(f"derived.{path}: follows {derived.of}, which is of no {root}")
    bases = list(enumerate(_bases(root, specs)))
    both = [(i, s) for i, s in bases if _is_known(path, s) and _is_known(derived.of, s)]
    if not both:
        raise SpecError(f"derived.{path}: no {root} has both it and {derived.of}")
    followed = [a for a in varied if _sets(a, derived.of)]
    if not followed:  # of what the specs themselves state
        followed = [Axis("", 1, {(root, i): ((),) for i, _ in both})]
        varied = [*varied, *followed]
    (old,) = followed
    new = dict(old.settings)
    for i, spec in both:
        options = []
        for settings in old.settings[root, i]:
            own = {s.path: s.shown for s in settings}
            of = own.get(derived.of, _stated(derived.of, spec)[0])
            value = _multiple(path, (of, _stated(path, spec)[1]), derived.times)
            raw = {s.path: s.value for s in settings} | {path: value}
            options.append(_tried(f"derived.{path}", root, spec, raw, specs))
        new[root, i] = tuple(options)
    return [a._replace(settings=new) if a is old else a for a in varied]


def _sets(axis: Axis, path: str) -> bool:
    return any(s.path == path for options in axis.settings.values() for s in options[0])


def _bases(root: str, specs: Specs) -> tuple[Any, ...]:
    """Return the specs that paths of a root lead into; for the batch, (None,)."""
    return specs[root] if root in SPECS else (None,)


def _is_known(path: str, spec: Any) -> bool:
    return spec is None or is_known(spec, path.partition(".")[2])


def _refuse_unknown(path: str, specs: Specs) -> None:
    """See that at least one of the specs has a path. Raises: SpecError, with the nearest."""
    root, _, rest = path.partition(".")
    good = (root in SPECS and rest) or path == "batch"
    if not good or not any(_is_known(path, spec) for spec in _bases(root, specs)):
        first = specs[root][0] if root in SPECS else None
        changed(_inputs(root, first, specs), {path: None})
        raise SpecError(f"{path!r} is no path to a value")


def _inputs(root: str, spec: Any, specs: Specs) -> Inputs:
    """Return the inputs of one evaluation, with a spec in its place."""
    first = {name: specs[name][0] for name in SPECS}
    return Inputs(**(first | ({root: spec} if root in SPECS else {})))


def _stated(path: str, spec: Any) -> tuple[Any, bool]:
    """Return the value of a spec at a path, and whether it must be a whole number."""
    root, _, rest = path.partition(".")
    leaf = next((leaf for leaf in leaves(spec) if leaf.path == rest), None)
    if leaf is not None:
        return leaf.value, leaf.whole
    value = fields_of(root, spec).get(path)
    return value, isinstance(value, int)


def _multiple(path: str, stated: tuple[Any, bool], factor: float) -> Any:
    """Multiply a stated number. Raises: SpecError where there is none, or it would not be whole."""
    value, whole = stated
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise SpecError(f"{path}: {value!r} is no number that could be taken {factor:g} times")
    try:
        product = value * factor
    except OverflowError:
        product = math.inf
    if not math.isfinite(product):
        raise SpecError(f"{path}: {factor:g} times {show(value)} is beyond 1e308")
    if whole and product != round(product):
        raise SpecError(f"{path}: {factor:g} times {value:g} is {product:g}, which is not whole")
    return round(product) if whole else product


def _tried(
    where: str, root: str, spec: Any, raw: Mapping[str, Any], specs: Specs
) -> tuple[Setting, ...]:
    """Put the settings of one option into the spec. Raises: SpecError where they are wrong."""
    try:
        inputs = changed(_inputs(root, spec, specs), raw)
        check_run(inputs.batch, "training")
    except HwmodelError as error:
        raise SpecError(f"{where}: {error}") from None
    if root == "batch":
        return tuple(Setting(path, value, value) for path, value in raw.items())
    wanted = {path.partition(".")[2] for path in raw}
    now = {f"{root}.{leaf.path}": leaf.value for leaf in leaves(getattr(inputs, root))
           if leaf.path in wanted}  # fmt: skip
    return tuple(Setting(path, value, now.get(path, value)) for path, value in raw.items())
