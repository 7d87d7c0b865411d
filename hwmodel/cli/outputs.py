"""Where commands leave what they made: seen to before any time is spent on it."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from hwmodel.errors import HwmodelError
from hwmodel.specs.inputs import refuse_input

__all__ = ["see_apart", "see_folder", "see_outputs"]

HEAD = 4096  # bytes of a file in which its kind is told


class _Kind(NamedTuple):
    """What goes to the place that an option names."""

    what: str
    endings: tuple[str, ...]  # of its name; (): any, or the figure's own rule
    known: Callable[[Path], bool]  # whether a file that is there is one of these


def _begins(text: str) -> Callable[[Path], bool]:
    return lambda path: _head(path).removeprefix(b"\xef\xbb\xbf").startswith(text.encode())


def _head(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(HEAD)


def _has_weights(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as file:
            return any(name.endswith("/weight.npy") for name in file.namelist())
    except zipfile.BadZipFile:
        return False


_KINDS = {
    "--trace": _Kind("trace", (), lambda path: b'"run"' in _head(path)),
    "--weights": _Kind("file of weights", (".npz",), _has_weights),
    "--curves": _Kind("table of epochs", (".csv",), _begins("epoch,steps,loss,")),
    "--csv": _Kind("table of a study", (".csv",), _begins("network,dataset,method,")),
    "--figure": _Kind("figure", (), lambda path: True),
}


def see_folder(path: Path) -> None:
    """See that a folder is one or can be made. Raises: HwmodelError."""
    if path.exists() and not path.is_dir():
        raise HwmodelError(f"{path}: cannot be written: is no folder")
    _see_writable(path, [path, *path.absolute().parents])


def see_outputs(places: Mapping[str, Path | None]) -> None:
    """See that files can be written where options say, and take the place of nothing else.

    Nothing is made. What was read by the command is refused as the rest is: it is of another kind.

    Raises: HwmodelError.
    """
    from hwmodel.trainer.checkpoint import checkpoint_path
    from hwmodel.views.plot import see_figure

    taken: dict[Path, str] = {}
    for option, path in places.items():
        if path is None:
            continue
        endings = _KINDS[option].endings
        real = path.resolve()  # a link leads to what is written over
        for name in (path, real):
            if option == "--figure":
                see_figure(name)
            elif endings and name.suffix.lower() not in endings:
                raise HwmodelError(f"{option} {name}: end its name in {endings[0]}")
        _see_place(option, path)
        _take(taken, option, path, real)
        if option == "--trace":
            _take(taken, option, path, checkpoint_path(real))


def see_apart(places: Iterable[tuple[str, Path | None]]) -> None:
    """See that no two options name one file, and none a file that was read before.

    Raises: HwmodelError.
    """
    taken: dict[Path, str] = {}
    for option, path in places:
        if path is not None:
            refuse_input(path)
            _take(taken, option, path, path.resolve())


def _take(taken: dict[Path, str], option: str, path: Path, real: Path) -> None:
    """Note where an option's file goes. Raises: HwmodelError where another's does."""
    if real in taken:
        raise HwmodelError(
            f"{option} {path}: {taken[real]} goes to this file, too; give one of them another name"
        )
    taken[real] = option


def _see_place(option: str, path: Path) -> None:
    """See that one file can be written. Raises: HwmodelError."""
    kind = _KINDS[option]
    if path.is_dir():
        raise HwmodelError(f"{path}: cannot be written: is a folder")
    _see_writable(path, path.absolute().parents)
    try:
        other = path.is_file() and path.stat().st_size and not kind.known(path)
    except OSError as error:
        raise HwmodelError(f"{path}: cannot be read: {error.strerror or error}") from None
    if other:
        raise HwmodelError(
            f"{option} {path}: is there already, and is no {kind.what}; give another name"
        )


def _see_writable(path: Path, folders: Sequence[Path]) -> None:
    """See that the first folder that is there takes files. Raises: HwmodelError."""
    try:
        with tempfile.TemporaryFile(dir=next(folder for folder in folders if folder.exists())):
            pass
    except OSError as error:
        raise HwmodelError(f"{path}: cannot be written: {error.strerror or error}") from None
