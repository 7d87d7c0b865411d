"""Bundles a table with all that its command reads, so that it can be verified anywhere.

A bundle is a zip file: the table, its inputs, and a lock. What the command calls `chips/a.yaml` is
called so in the bundle, too; what stands outside the present folder has a place of its own. The
same files under the same versions give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path, PurePosixPath
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from hwmodel.errors import DataError, HwmodelError
from hwmodel.graph.network import Network
from hwmodel.importers.load import load_network
from hwmodel.rerun.answers import provenance
from hwmodel.rerun.lock import LOCK, MAX_BYTES, MAX_FILES, Held, Input, Lock, made_here, may_be_held
from hwmodel.rerun.verify import differing, stated
from hwmodel.specs import provenance as made_of
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import NamedSpec, load, whole_file
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.inputs import inputs_kept
from hwmodel.specs.method import Method
from hwmodel.specs.trace import read_trace, short_name
from hwmodel.specs.training import Training
from hwmodel.vary.sweep.file import SweepFile

__all__ = ["bundle"]

PIECE = 2**20  # bytes that are copied at a time
_PLAIN_FILE = 0o100644 << 16
_KINDS: tuple[type[NamedSpec], ...] = (Hardware, Method, Accounting, Training, SweepFile)


def bundle(table: Path, output: Path) -> Lock:
    """Write a bundle of a table and its inputs; return what it says of itself.

    Inputs are looked for where the command names them, from the present folder.

    Raises: DataError for a table that `verify` would refuse, or of which an input has changed;
        HwmodelError where an input cannot be read, or the bundle not be written.
    """
    if output.suffix.lower() != ".zip":
        raise HwmodelError(f"{output}: a bundle is a zip file; end its name in .zip")
    with inputs_kept() as read:
        _, made, asked = stated(table)
        of_table = {*read}
        now = provenance(asked)
        names = [name for name in read if name not in of_table]
        _see_unchanged(table, made["inputs_sha256"], now, names)
        return _written(table, sorted(names), output)


def _see_unchanged(table: Path, hashes: str, now: made_of.Provenance, names: Iterable[str]) -> None:
    """See that inputs are what the table was made of. Raises: DataError, which names the file."""
    changed = differing(hashes, now)
    if changed is None:
        raise DataError(f"{table}: was made from other inputs than its command names today")
    for given, before, after in changed:
        file = _file_of(given, names)
        named = f"{file}: {given}" if file else f"{given}, which hwmodel brings along,"
        raise DataError(
            f"{named} has changed since {table} was made ({before} then, {after} now); make the "
            "table anew, or bundle what it was made of"
        )


def _file_of(given: made_of.Input, names: Iterable[str]) -> str:
    """Find the file that an input was read from; "" for what is bundled with the program."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            with suppress(HwmodelError):
                if _name_in(Path(name), given.kind) == given.name:
                    return name
    return ""


def _name_in(path: Path, kind: str) -> str:
    """What a file is called as an input of one kind. Raises: HwmodelError."""
    if kind == Network.KIND:
        return load_network(path).name
    if kind == "trace":
        return short_name(read_trace(path).run)
    one = next((one for one in _KINDS if kind == one.KIND), None)
    return load(one, path).name if one else path.name


def _written(table: Path, names: Sequence[str], output: Path) -> Lock:
    """Write table, inputs and lock. Raises: HwmodelError."""
    _see_small([table, *map(Path, names)])
    first = _plain(table.name)
    places = _places(names, taken={LOCK, first.casefold()})
    with whole_file(output, "wb") as stream, ZipFile(stream, "w") as archive:
        of_table = Held(file=first, sha256=_put(archive, table, first))
        inputs = tuple(
            Input(named=name, file=place, sha256=_put(archive, Path(name), place))
            for name, place in places.items()
        )
        lock = Lock(version=1, made_with=made_here(), table=of_table, inputs=inputs)
        text = json.dumps(lock.model_dump(), indent=1, ensure_ascii=False)
        archive.writestr(_entry(LOCK), f"{text}\n")
    return lock


def _see_small(files: Sequence[Path]) -> None:
    """See that files fit a bundle. Raises: HwmodelError, with the largest of them."""
    try:
        sizes = {file: file.stat().st_size for file in files}
    except OSError as error:
        raise DataError(f"{error.filename}: cannot be read: {error.strerror}") from None
    if sum(sizes.values()) > MAX_BYTES:
        largest = max(sizes, key=sizes.__getitem__)
        raise HwmodelError(
            f"{largest}: {sizes[largest]:,} B are more than fits: a bundle holds at most "
            f"{MAX_BYTES:,} B; of an ONNX file 'hwmodel network import' keeps all but the weights"
        )
    if len(files) > MAX_FILES:
        raise HwmodelError(f"{files[0]}: has more than {MAX_FILES:,} input files")


def _plain(name: str) -> str:
    """A file's name as one that it may have in a bundle."""
    return name if may_be_held(name) else re.sub(r"[^\w.+-]", "_", name)


def _places(names: Sequence[str], taken: set[str]) -> dict[str, str]:
    """Give each input a name in the bundle: its own, or one in a folder of its own.

    Names that differ in capitals alone are one name on some systems.
    """
    places = {}
    for name in names:
        place, numbers = name, count(1)
        while not may_be_held(place) or place.casefold() in taken:
            place = f"elsewhere/{next(numbers)}/{_plain(PurePosixPath(name).name)}"
        taken.add(place.casefold())
        places[name] = place
    return places


def _put(archive: ZipFile, source: Path, name: str) -> str:
    """Copy a file into a bundle; return the SHA-256 of its bytes. Raises: DataError."""
    seen = hashlib.sha256()
    try:
        stream = source.open("rb")
    except OSError as error:
        raise DataError(f"{source}: cannot be read: {error.strerror or error}") from None
    with stream, archive.open(_entry(name), "w") as target:
        while piece := stream.read(PIECE):
            seen.update(piece)
            target.write(piece)
    return seen.hexdigest()


def _entry(name: str) -> ZipInfo:
    """A file of a bundle, which says nothing of when, where and by whom it was made."""
    entry = ZipInfo(name)
    entry.compress_type, entry.create_system, entry.external_attr = ZIP_DEFLATED, 3, _PLAIN_FILE
    return entry
