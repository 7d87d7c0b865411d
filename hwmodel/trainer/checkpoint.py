"""Checkpoints of a run after an epoch: every weight, and the trace up to there."""

from __future__ import annotations

import io
import zipfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hwmodel.errors import DataError
from hwmodel.specs.files import write
from hwmodel.specs.inputs import MAX_JSON, refuse_endless
from hwmodel.specs.provenance import code_digest
from hwmodel.specs.trace import Run, Trace, dumps, loads
from hwmodel.trainer.nets import Net
from hwmodel.trainer.real import BatchNorm

__all__ = ["checkpoint_path", "restore", "save"]

Arrays = dict[str, NDArray[Any]]

SEAL = 32  # bytes
HEAD = 4096  # bytes; more than the headers of one member take
KEPT = {
    "boolean": ("bits", "accumulator", "ratio"),
    "real": ("value", "mean", "square", "steps"),
}


def checkpoint_path(trace: Path) -> Path:
    """Return the path of a trace's checkpoint: beside it, with `.checkpoint.npz` at the end."""
    return trace.with_name(f"{trace.name}.checkpoint.npz")


def save(path: Path, net: Net, trace: Trace) -> None:
    """Write weights, optimizer states and the trace so far, whole or not at all."""
    arrays = {name: np.asarray(getattr(owner, field)) for name, owner, field in _fields(net)}
    arrays["trace"] = np.frombuffer(dumps(trace).encode(), np.uint8)
    packed = io.BytesIO()
    np.savez(packed, allow_pickle=False, **arrays)
    content = packed.getvalue()
    write(path, content + _seal(content))


def restore(path: Path, net: Net, run: Run) -> Trace:
    """Put a checkpoint's weights and states into `net`; return the trace up to there.

    Raises: DataError where there is no checkpoint, it is damaged, it is larger than weights,
        states and trace can be, or it belongs to another run or to other code.
    """
    held = sum(np.asarray(getattr(owner, x)).nbytes + HEAD for _, owner, x in _fields(net))
    arrays = _load(path, held + MAX_JSON + HEAD)
    trace = loads(arrays["trace"].tobytes().decode("utf-8", "replace"), path)
    for field in Run.model_fields:
        then, now = getattr(trace.run, field), getattr(run, field)
        if then != now:
            raise DataError(
                f"{path}: belongs to a run with {field} {then}, this one has {now}; "
                "give the same options, or leave out --resume to begin anew"
            )
    for name, owner, field in _fields(net):
        _put(arrays.get(name), owner, field, f"{path}: {name}")
    return trace


def _fields(net: Net) -> list[tuple[str, Any, str]]:
    """List all arrays and numbers that training changes: name in the file, owner, field."""
    fields: list[tuple[str, Any, str]] = []
    for node in net.nodes:
        for kind, kept in KEPT.items():
            for index, weights in enumerate(getattr(node.layer, kind)):
                fields += [(f"{node.name}/{kind}{index}/{x}", weights, x) for x in kept]
        if isinstance(node.layer, BatchNorm):
            fields += [(f"{node.name}/{x}", node.layer, x) for x in ("mean", "variance")]
    for name, limiter in net.limiters.items():
        fields += [(f"{name}/{x}", limiter, x) for x in ("steps", "exponent", "known")]
    return fields


def _put(value: NDArray[Any] | None, owner: Any, field: str, where: str) -> None:
    old = getattr(owner, field)
    if value is None or value.shape != np.shape(old) or value.dtype != np.asarray(old).dtype:
        raise DataError(f"{where}: is missing or of another shape; the checkpoint is damaged")
    setattr(owner, field, value if isinstance(old, np.ndarray) else type(old)(value))


def _load(path: Path, most: int) -> Arrays:
    """Read the arrays of a checkpoint of at most so many bytes. Raises: DataError."""
    refuse_endless(path)
    try:
        with path.open("rb") as stream:
            whole = stream.read(most + 1)
        if len(whole) > most:
            raise DataError(
                f"{path}: is larger than {most:,} B, the most that one of this network takes"
            )
        content, seal = whole[:-SEAL], whole[-SEAL:]
        if seal != _seal(content):
            raise DataError(
                f"{path}: is no checkpoint, a damaged one, or one of other code; leave out "
                "--resume to begin anew"
            )
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            members = file.zip.infolist()
            if any(member.compress_type for member in members):  # none of ours is
                raise ValueError("a member may be of any size")
            if sum(member.file_size for member in members) > most:
                raise ValueError("members share their bytes")
            arrays = {name: file[name] for name in file.files}
        arrays["trace"]
    except FileNotFoundError:
        raise DataError(f"{path}: is not there, so there is no run to resume") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, LookupError, EOFError, TypeError, zipfile.BadZipFile, MemoryError):
        raise DataError(f"{path}: is no checkpoint, or a damaged one") from None
    return arrays


def _seal(content: bytes) -> bytes:
    """Return a hash of a checkpoint and of the code that wrote it; it stands at the file's end."""
    return sha256(code_digest().encode() + content).digest()
