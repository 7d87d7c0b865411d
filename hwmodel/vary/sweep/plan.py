"""The plan of a sweep file: the points of its grid, in one order; mistakes are refused.

A point is a number whose digits say which option each axis takes. Axes on which the work depends
(network, accounting, method, batch) come first and those of the chip last, so that points that
share work stand beside each other. Every option is tried on every spec before anything runs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from math import prod
from pathlib import Path
from random import Random
from typing import Any

from hwmodel import __version__
from hwmodel.errors import HwmodelError, SpecError
from hwmodel.importers.load import load_network
from hwmodel.model.compare import told_apart
from hwmodel.model.duration import UNTIMED
from hwmodel.model.plans import occupied
from hwmodel.model.widths import method_inputs
from hwmodel.model.workload import Job, Mode
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.arguments import expect
from hwmodel.specs.files import NamedSpec, load, read_yaml
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.method import Method
from hwmodel.specs.mistakes import line_of
from hwmodel.specs.provenance import Input, input_of
from hwmodel.vary.paths import Inputs, changed, see_apart
from hwmodel.vary.sweep.axes import SPECS, Axis, Setting, Specs, axis_of, fields_of, with_derived
from hwmodel.vary.sweep.conditions import Condition, conditions
from hwmodel.vary.sweep.constraints import Column, kept
from hwmodel.vary.sweep.file import SweepFile

__all__ = ["NAMES", "Digits", "Plan", "plan", "read_plan"]

NAMES = ("network", "accounting", "method", "mode", "batch", "hardware")
MAX_GRID = 10_000_000  # points that are looked at one by one
MAX_DRAWN = 2**62  # points of a grid that is drawn from

Digits = tuple[int, ...]


@dataclass(frozen=True)
class Plan:
    """The specs of a sweep and its axes; equal plans have equal results."""

    file: SweepFile
    specs: Specs  # by root: the specs, or the plain values
    baseline: Method | None
    axes: tuple[Axis, ...]
    inner: int  # the first of the axes that change the chip alone

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The inputs on which the results depend, each once."""
        found = [input_of(self.file)]
        found += [input_of(spec) for root in SPECS if root != "method" for spec in self.specs[root]]
        methods = (*self.specs["method"], *([self.baseline] if self.baseline else []))
        found += [given for method in methods for given in method_inputs(method)]
        return tuple(dict.fromkeys(found))

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that decides the results, and of the version."""
        text = json.dumps([__version__, *self.inputs])
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def grid(self) -> int:
        """Points of the whole grid."""
        return prod(axis.length for axis in self.axes)

    @property
    def paths(self) -> tuple[str, ...]:
        """Fields that are set, in the order of the file: columns of the results."""
        stated = [path for axis in self.file.axes for path in axis] + list(self.file.derived)
        return tuple(path for path in stated if path != "batch")

    def values(self, path: str) -> list[Any]:
        """List the values that a field is set to."""
        options = (o for axis in self.axes for several in axis.settings.values() for o in several)
        return [s.shown for option in options for s in option if s.path == path]

    def digits(self, point: int) -> Digits:
        """Return the option of every axis at a point."""
        found = []
        for axis in reversed(self.axes):
            point, digit = divmod(point, axis.length)
            found.append(digit)
        return tuple(reversed(found))

    def which(self, root: str, digits: Digits) -> int:
        """Return the index of a point's spec (or mode, or batch) of a root.

        Args:
            digits: of all axes, or of the first ones up to the root's.
        """
        return next(
            digit for axis, digit in zip(self.axes, digits, strict=False) if axis.name == root
        )

    def settings(self, root: str, digits: Digits) -> tuple[Setting, ...]:
        """Return the fields of a root's spec that a point sets."""
        key = root, 0 if root == "batch" else self.which(root, digits)
        return tuple(
            setting
            for axis, digit in zip(self.axes, digits, strict=False)
            if key in axis.settings
            for setting in axis.settings[key][digit]
        )

    def shown(self, digits: Digits, roots: Sequence[str] = NAMES) -> dict[str, Any]:
        """Return the names and values of a point, by column.

        Args:
            digits: of all axes, or of the first ones up to those of the roots.
            roots: whose names and values these are.
        """
        values: dict[str, Any] = {}
        for root in roots:
            spec = self.specs[root][self.which(root, digits)]
            values[root] = spec.name if isinstance(spec, NamedSpec) else spec
            if root in (*SPECS, "batch"):
                values |= {s.path: s.shown for s in self.settings(root, digits)}
        return values

    def points(self) -> Sequence[int]:
        """List the points in order: all, or a sample, without those that break a constraint.

        Raises: HwmodelError for a grid too large to be looked at, or if no point is left.
        """
        sample, grid = self.file.sample, self.grid
        number = min(sample.points, grid) if sample else grid
        if number > MAX_GRID or grid > MAX_DRAWN:
            raise HwmodelError(
                f"sweep {self.file.name}: {grid:,} points; at most {MAX_GRID:,} are computed, "
                f"and a sample is drawn from {MAX_DRAWN:.1e} at most"
            )
        drawn: Sequence[int] = range(grid)
        if sample:
            drawn = sorted(Random(sample.seed).sample(drawn, number))
        wanted = self.conditions()
        computed = {"peak_bytes": Column(tuple(range(self.inner)), self._peak)}
        left = kept(self.axes, self.specs, drawn, wanted, computed) if wanted else drawn
        if not left:
            raise HwmodelError(f"sweep {self.file.name}: no point keeps all constraints")
        return left

    def work(self, outer: Digits) -> tuple[Inputs, Mode]:
        """Return what a point's work is of, without fields of its chip.

        Raises: HwmodelError for fields that no file could hold together.
        """
        roots = [root for root in NAMES if root != "hardware"]
        fields = {s.path: s.value for root in roots if root != "mode"
                  for s in self.settings(root, outer)}  # fmt: skip
        chosen = {root: self.specs[root][self.which(root, outer)] for root in roots}
        mode: Mode = chosen.pop("mode")
        return changed(Inputs(hardware=self.specs["hardware"][0], **chosen), fields), mode

    def _peak(self, outer: Digits) -> int | None:
        """The most bytes that live at one time; None where there is no work."""
        try:
            inputs, mode = self.work(outer)
            job = Job(inputs.method, inputs.accounting, inputs.batch, mode)
            return occupied(inputs.network, job).peak().size
        except HwmodelError:
            return None

    def conditions(self) -> list[Condition]:
        """Parse the constraints. Raises: HwmodelError for an unknown name, or no comparison."""
        if not self.file.constraints:
            return []
        stated = (fields_of(root, spec) for root in SPECS for spec in self.specs[root])
        known = {"peak_bytes", *NAMES, *self.paths, *(path for found in stated for path in found)}
        found: list[Condition] = []
        for number, text in enumerate(self.file.constraints):
            with _at("constraints", number):
                found += conditions(text, known, ("energy", *UNTIMED))
        return found


def read_plan(path: Path) -> Plan:
    """Read a sweep's file into a plan. Raises: HwmodelError, as `plan`, with file and line."""
    file = load(SweepFile, path)
    try:
        return plan(file)
    except HwmodelError as error:
        if not error.at:
            raise
        line = line_of(read_yaml(path), error.at)
        raise SpecError(f"{path}:{line}: {error}") from None


def plan(file: SweepFile) -> Plan:
    """Read what a sweep names and try every option of every axis.

    Raises: HwmodelError: SpecError for a path that none of the specs has, or a value that breaks
        a rule; NameUnknown.
    """
    expect(SweepFile, "file", file, "a SweepFile, as files.load reads it")
    specs = _specs(file)
    varied: list[Axis] = []
    for number, axis in enumerate(file.axes):
        with _at("axes", number):
            varied.append(axis_of(number + 1, axis, specs))
    if len(specs["batch"]) > 1 and any(("batch", 0) in axis.settings for axis in varied):
        raise SpecError(f"sweep {file.name}: batch is set in two places")
    for path, derived in file.derived.items():
        with _at("derived", path):
            varied = with_derived(path, derived, varied, specs)
    _see_apart(file, varied, specs)
    names = {root: Axis(root, len(specs[root]), {}) for root in NAMES}
    outer = [a for a in varied if any(root != "hardware" for root, _ in a.settings)]
    inner = [a for a in varied if all(root == "hardware" for root, _ in a.settings)]
    first = [names[root] for root in NAMES if root != "hardware"] + outer
    with _at("baseline"):
        baseline = None if file.baseline is None else load(Method, file.baseline)
        if baseline is not None:
            told_apart(specs["method"], baseline)
    found = Plan(file, specs, baseline, (*first, names["hardware"], *inner), len(first))
    found.conditions()  # a mistake in them is told before anything runs
    return found


def _see_apart(file: SweepFile, varied: Sequence[Axis], specs: Mapping[str, Sequence[Any]]) -> None:
    """See that no two axes set one figure of a spec, by whatever words. Raises: SpecError."""
    for root, several in specs.items():
        for index, spec in enumerate(several if root in SPECS and root != "network" else ()):
            options = [axis.settings.get((root, index), ((),))[0] for axis in varied]
            paths = [one.path.partition(".")[2] for settings in options for one in settings]
            try:
                see_apart(spec, paths)
            except SpecError as error:
                raise SpecError(f"sweep {file.name}: {error}") from None


@contextmanager
def _at(*way: str | int) -> Iterator[None]:
    """Note in an error the field of the file that is wrong."""
    try:
        yield
    except HwmodelError as error:
        error.at = way
        raise


def _specs(file: SweepFile) -> dict[str, tuple[Any, ...]]:
    """Load everything that the file names."""
    specs: dict[str, tuple[Any, ...]] = {
        "network": _loaded("network", load_network, file.network),
        "hardware": _loaded("hardware", partial(load, Hardware), file.hardware),
        "method": _loaded("method", partial(load, Method), file.method),
        "accounting": _loaded("accounting", partial(load, Accounting), file.accounting),
        "mode": _several(file.mode),
        "batch": _several(file.batch),
    }
    for root, several in specs.items():
        names = [spec.name if isinstance(spec, NamedSpec) else spec for spec in several]
        twice = [name for name in names if names.count(name) > 1]
        with _at(root):
            if twice:
                raise SpecError(f"sweep {file.name}: {root} {twice[0]} stands there twice")
    return specs


def _loaded(root: str, read: Callable[[str], Any], stated: Any) -> tuple[Any, ...]:
    with _at(root):
        return tuple(map(read, _several(stated)))


def _several(stated: Any) -> tuple[Any, ...]:
    return stated if isinstance(stated, tuple) else (stated,)
