"""One field of the chips or accountings moved, for a method and its baseline alike."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from hwmodel.errors import HwmodelError, SpecError
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import scalar
from hwmodel.specs.hardware import Hardware

__all__ = ["Chosen", "moved", "moved_words"]

Chosen = tuple[tuple[Hardware, ...], tuple[Accounting, ...]]
_TIMES = re.compile(r"x([0-9]{1,6}(?:\.[0-9]{1,9})?)")


def moved(moves: Sequence[str], chips: Sequence[Hardware], rules: Sequence[Accounting]) -> Chosen:
    """Return chips and accountings with fields moved, of each that has the field.

    Args:
        moves: as `hardware.levels.L3.access_energy=x0.5`, `accounting.counting.rows=touched`: a
            path as of a sweep, then a value as its file states it, or a multiple of what it is.

    Raises: HwmodelError for what is no move, SpecError where nobody has the field or a value
        breaks a rule.
    """
    found: dict[str, list[Any]] = {"hardware": [*chips], "accounting": [*rules]}
    paths: dict[str, list[str]] = {root: [] for root in found}
    for move in moves:
        path, sign, value = move.partition("=")
        root, _, rest = path.partition(".")
        if root not in found or not rest or not sign or not value:
            raise HwmodelError(
                f"--move {move!r}: a field of a chip or an accounting and its value, as "
                "hardware.levels.L3.access_energy=x0.5 or accounting.extras.optimizer=adam"
            )
        paths[root].append(rest)
    for root, mine in paths.items():
        for spec in found[root] if len(mine) > 1 else ():
            _see_apart(spec, mine)
    for move in moves:
        path, _, value = move.partition("=")
        root, _, rest = path.partition(".")
        found[root] = _each(move, found[root], rest, value)
    return tuple(found["hardware"]), tuple(found["accounting"])


def _see_apart(spec: Any, paths: Sequence[str]) -> None:
    """See that no two moves are of one figure of a spec. Raises: SpecError."""
    from hwmodel.vary.paths import is_known, see_apart

    try:
        see_apart(spec, [path for path in paths if is_known(spec, path)])
    except SpecError as error:
        raise SpecError(f"--move: {error}") from None


def moved_words(
    moves: Sequence[str],
    chips: Sequence[Hardware],
    rules: Sequence[Accounting],
    called: Callable[[str, str], str] = lambda name, kind: name,
) -> str:
    """Say what was moved, and of which where not all have the field; "" where nothing was.

    Args:
        called: what a name of a kind is called; by default the name.
    """
    if not moves:  # what tells fields from others is imported for them alone
        return ""
    from hwmodel.vary.paths import is_known

    found = []
    for move in moves:
        root, _, rest = move.partition("=")[0].partition(".")
        specs: Sequence[Hardware | Accounting] = chips if root == "hardware" else rules
        having = [called(spec.name, spec.KIND) for spec in specs if is_known(spec, rest)]
        alone = f" of {', '.join(having)} alone" if 0 < len(having) < len(specs) else ""
        found.append(f"{move}{alone}")
    return ", ".join(found)


def _each(move: str, specs: Sequence[Any], path: str, value: str) -> list[Any]:
    """Move the field of every spec that has it. Raises: SpecError."""
    from hwmodel.vary.paths import PLAIN, is_known, leaves, replaced

    if not any(is_known(spec, path) for spec in specs):
        replaced(specs[0], path, value)  # says what is nearest
    has_unit = path.rpartition(".")[2] in (*PLAIN, "capacity")  # a file's number alone is refused
    new = []
    for spec in specs:
        if not is_known(spec, path):
            new.append(spec)
            continue
        by: Any = value if has_unit else scalar(value)
        if match := _TIMES.fullmatch(value):
            now = next((leaf.value for leaf in leaves(spec) if leaf.path == path), None)
            if isinstance(now, bool) or not isinstance(now, (int, float)):
                raise SpecError(f"--move {move!r}: {spec.name} has no number there to multiply")
            by = now * float(match[1])
            by = int(by) if isinstance(now, int) and by == int(by) else by
        new.append(replaced(spec, path, by))
    return new
