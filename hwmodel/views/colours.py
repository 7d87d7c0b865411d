"""Colours, markers and hatches: a thing looks the same in every figure, whatever is beside it.

Methods state their look in their files. What a file does not say follows from the name alone, so
that it stays the same in other company. Nothing here needs matplotlib.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from itertools import cycle
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, get_args
from warnings import catch_warnings
from zlib import crc32

from hwmodel.errors import HwmodelError, SpecWarning, nearest
from hwmodel.importers.load import load_network
from hwmodel.rerun.asked import (
    CompareAsked,
    ReportAsked,
    SensitivityAsked,
    SweepAsked,
    read_command,
)
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import NamedSpec, bundled, is_path, load
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.method import Hatch, Marker, Method

if TYPE_CHECKING:
    from hwmodel.model.compare import Comparison

__all__ = ["Look", "called", "depth_looks", "ink_on", "lightness", "look", "looks", "looks_of"]
__all__ += ["named", "part_looks", "shade_on", "specs_named", "told"]

# For methods whose file states no colour: of middle lightness, apart from those of the main ones.
_SPARE_COLOURS = ("#4c72b0", "#8a6bbd", "#a0522d", "#d1772e", "#5b8c3e", "#6b7a8f", "#c2528b")


class Look(NamedTuple):
    """The look of a method or part; `marker` and `hatch` are matplotlib's characters."""

    colour: str  # "#rrggbb"
    marker: str
    hatch: str  # "" is plain


# Parts of a stack. Signals are the light shade of the tensor they belong to, with its hatch.
_PARTS = {
    "forward": Look("#173f6f", "", ""),
    "backward_input": Look("#eab04d", "", ""),
    "backward_weight": Look("#a8483a", "", "/"),
    "update": Look("#b9dcef", "", ""),
    "forward_product": Look("#173f6f", "", ""),
    "forward_elementwise": Look("#8fa6c4", "", "."),
    "backward_input_product": Look("#eab04d", "", ""),
    "backward_input_elementwise": Look("#f6dcae", "", "."),
    "backward_weight_product": Look("#a8483a", "", "/"),
    "backward_weight_elementwise": Look("#dba79f", "", "."),
    "I": Look("#173f6f", "", ""),
    "dI": Look("#9ccbe6", "", ""),
    "F": Look("#a8483a", "", "/"),
    "dF": Look("#eab04d", "", "/"),
    "O": Look("#4f9a7a", "", "."),
    "dO": Look("#a8d5a2", "", "."),
}
_SPARE_PARTS = (
    Look("#6f6f6f", "", ""),
    Look("#b48fd9", "", "x"),
    Look("#5d2a6e", "", "-"),
    Look("#d9d9d9", "", ""),
    Look("#d98fae", "", "|"),
    Look("#333333", "", "+"),
    Look("#f3e3b3", "", "o"),
)

_DEPTHS = (
    Look("#08305f", "", ""),
    Look("#2b6cab", "", ""),
    Look("#7fb2d9", "", ""),
    Look("#bcd6ea", "", "/"),
    Look("#bcd6ea", "", "x"),
    Look("#bcd6ea", "", "."),
    Look("#dfe9f2", "", ""),
    Look("#dfe9f2", "", "/"),
    Look("#dfe9f2", "", "x"),
    Look("#dfe9f2", "", "."),
)
_ELSEWHERE = (  # operations, cycles of arrays, static energy
    Look("#eab04d", "", "|"),
    Look("#a8483a", "", "-"),
    Look("#6f6f6f", "", "+"),
)


Spec = TypeVar("Spec", bound=NamedSpec)
_stated: dict[str, Look] = {}  # of some methods, while something is drawn
_labels: dict[tuple[str, str], str] = {}  # (kind, name) -> what stands for it, meanwhile
_specs: list[NamedSpec] | None = None  # that say so; None where nothing is drawn


@contextmanager
def looks_of(specs: Iterable[NamedSpec]) -> Iterator[None]:
    """Let methods look, and methods, networks and chips be called, as they say, meanwhile.

    What was set before stays as it is.
    """
    global _stated, _labels, _specs
    before = _stated, _labels, _specs
    if _specs is None:
        _specs = found = list(specs)
        _stated = {one.name: _look(one) for one in found if isinstance(one, Method)}
        names = {(one.KIND, one.name): getattr(one, "label", None) or one.name for one in found}
        _labels = {
            (kind, name): label if _alone(kind, label, names) else f"{label} ({name})"
            for (kind, name), label in names.items()
            if label != name
        }
    try:
        yield
    finally:
        _stated, _labels, _specs = before


def _alone(kind: str, label: str, names: Mapping[tuple[str, str], str]) -> bool:
    """Say whether no two of a kind are called so."""
    return sum(one == label for (its, _), one in names.items() if its == kind) == 1


def told(kind: type[Spec]) -> list[Spec]:
    """Return the methods, chips or accountings of what is drawn, each once."""
    found = (one for one in _specs or () if isinstance(one, kind))
    return list({one.name: one for one in found}.values())


def called(name: str, kind: str = "method") -> str:
    """Return the label of a method, network or chip: what its file says, or else its name.

    Args:
        kind: "method", "network" or "hardware".
    """
    return _labels.get((kind, name), name)


def baseline_of(line: Comparison) -> str:
    """What is 100 % for a line, by its label: a method, if need be on a network."""
    method, on, network = (line.baseline or "baseline").partition(" on ")
    return f"{called(method)}{on}{called(network, 'network')}"


def named(given: Iterable[str], methods: Sequence[str], option: str) -> tuple[str, ...]:
    """Return the names of methods of a table that an option gives by name, label or file.

    A label that has a comma in it may have been taken apart at it.

    Raises: HwmodelError where one is none of them, or more than one.
    """
    found = []
    for word in _rejoined([*given], methods):
        name = load(Method, word).name if is_path(word) else word
        same = [m for m in methods if name in (called(m), called(m).removesuffix(f" ({m})"))]
        meant = [name] if name in methods else same
        if len(meant) > 1:
            raise HwmodelError(
                f"{option} {word}: is the label of {' and '.join(meant)}; give a name"
            )
        if not meant:
            known = dict.fromkeys([*methods, *map(called, methods)])
            hint = nearest(word, known)
            raise HwmodelError(f"{option} {word}: is no method of the table; {hint}")
        found += meant
    return tuple(found)


def _rejoined(words: list[str], methods: Sequence[str]) -> Iterator[str]:
    """Yield words of an option; those that a label was split into at its commas as one."""
    known = {name: called(name).replace(", ", ",") for name in methods}
    while words:
        joined = {",".join(words[:n]): n for n in range(len(words), 1, -1)}
        label, taken = next(
            ((called(m), joined[text]) for m, text in known.items() if text in joined),
            (words[0], 1),
        )
        yield label
        del words[:taken]


def specs_named(commands: str) -> Iterator[NamedSpec]:
    """Load the methods, chips and networks that some commands name, joined by semicolons.

    Of networks those in files alone. Bundled methods and chips are among them, so that a file's
    label that is the name of one beside it is told apart. A file that is gone, or is none any
    more, is passed over.
    """
    from hwmodel.vary.sweep.file import SweepFile

    kinds = (CompareAsked, ReportAsked, SensitivityAsked, SweepAsked)
    for text in re.split("; (?=hwmodel )", commands):
        with suppress(HwmodelError), catch_warnings(action="ignore", category=SpecWarning):
            asked: Any = read_command(text, kinds)
            if isinstance(asked, SweepAsked):
                asked = load(SweepFile, asked.file)
            names = asked.methods if hasattr(asked, "methods") else asked.method
            whole = getattr(asked, "baseline", "")
            for name in filter(None, [*_each(names), whole]):
                with suppress(HwmodelError):
                    yield load(Method, name)
            for name in _each(getattr(asked, "accounting", ())):
                with suppress(HwmodelError):
                    yield (rule := load(Accounting, name))
                    yield load(Method, rule.baseline)
            for name in _each(getattr(asked, "hardware", ())):
                with suppress(HwmodelError):
                    yield load(Hardware, name)
            nets: Any = getattr(asked, "networks", None) or getattr(asked, "network", ())
            for name in _files(nets):
                with suppress(HwmodelError):
                    yield load_network(str(name))


def _files(names: str | Sequence[str] | None) -> Iterator[str]:
    """Yield those of one or several names that are paths."""
    yield from filter(is_path, _each(names))


def _each(names: str | Sequence[str] | None) -> Sequence[str]:
    """One or several names, as several."""
    return [names] if isinstance(names, str) else names or ()


def look(method: str) -> Look:
    """Return the look of a method, by its name.

    >>> look("mine") == look("mine")
    True
    """
    return _stated.get(method) or _known(method)


@cache
def _known(method: str) -> Look:
    """The look of a method of which no file of a user's is known."""
    return _look(load(Method, method)) if method in bundled(Method) else _spare(method)


def _look(method: Method) -> Look:
    """What a method's file says; where it says nothing at all, what follows from the name."""
    spare = _spare(method.name)
    if not (method.colour or method.marker or method.hatch):
        return spare
    return Look(method.colour or spare.colour, method.marker or spare.marker, method.hatch or "")


def _spare(method: str) -> Look:
    spread = crc32(method.encode())
    markers, hatches = get_args(Marker), get_args(Hatch)
    return Look(
        _SPARE_COLOURS[spread % len(_SPARE_COLOURS)],
        markers[spread // 8 % len(markers)],
        hatches[spread // 128 % len(hatches)],
    )


def looks(methods: Iterable[str]) -> dict[str, Look]:
    """Return the look of each method."""
    return {method: look(method) for method in methods}


def part_looks(parts: Iterable[str]) -> dict[str, Look]:
    """Return the look of each part of a stack: its own, or else a spare one in turn.

    Beyond the seventh spare, looks come again.
    """
    spares = cycle(_SPARE_PARTS)
    return {part: _PARTS.get(part) or next(spares) for part in dict.fromkeys(parts)}


def depth_looks(levels: Sequence[str], elsewhere: Sequence[str]) -> dict[str, Look]:
    """Return the look of each level: memories from dark (outer) to light, all `elsewhere` apart."""
    memories = [level for level in levels if level not in elsewhere]
    shades = dict(zip(memories, cycle(_DEPTHS))) | dict(zip(elsewhere, _ELSEWHERE, strict=False))
    return {level: shades[level] for level in levels}


def lightness(colour: str) -> float:
    """Return CIE L* of "#rrggbb", 0 (black) to 100 (white): its lightness in grey.

    Source: IEC 61966-2-1 (sRGB), CIE 1976 L*.
    """
    channels = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    luminance = sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
    cube = luminance ** (1 / 3) if luminance > (6 / 29) ** 3 else None
    return 116 * cube - 16 if cube is not None else luminance * (29 / 3) ** 3


def ink_on(colour: str) -> str:
    """Return black or white, whichever has more contrast on `colour`: at least 4.5 to 1."""
    return "#000000" if lightness(colour) > 49.5 else "#ffffff"


def shade_on(colour: str) -> str:
    """Return the colour of a hatch on `colour`: half-way from it to `ink_on` it."""
    channels = zip((colour[i : i + 2] for i in (1, 3, 5)), [ink_on(colour)[1:3]] * 3, strict=True)
    return "#" + "".join(f"{(int(own, 16) + int(ink, 16)) // 2:02x}" for own, ink in channels)
