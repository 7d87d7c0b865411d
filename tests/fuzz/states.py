"""What commands keep between runs, spoiled: parts of sweeps, checkpoints, the cache, bundles.

A case is the bytes of one such file; the files that belong around it are made once, and laid about
it in an empty folder.
"""

import contextlib
import hashlib
import io
import json
import os
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from hwmodel.cli import main
from tests.fuzz.mutations import flow, json_case, spoiled, yaml_case
from tests.specs import CHIP, METHOD

Files = dict[str, bytes]
LOCK = "lock.json"


def ran(words: list[str], folder: Path) -> str:
    """Run a command in this process and a folder; return what it prints."""
    import sys

    here, argv, out = os.getcwd(), sys.argv, io.StringIO()
    os.chdir(folder)
    try:
        sys.argv = ["hwmodel", *words]
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            main()
    except SystemExit as stopped:
        assert not stopped.code, (words, stopped.code)
    finally:
        os.chdir(here)
        sys.argv = argv
    return out.getvalue()


@contextlib.contextmanager
def _folder(**texts: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        for file, text in texts.items():
            (Path(name) / f"{file}.yaml").write_text(text)
        yield Path(name)


def _files(folder: Path) -> Files:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix != ".lock"
    }


@cache
def stopped_sweep(sweep: str, tiny: str) -> tuple[Files, bytes]:
    """A sweep that was stopped when all its parts were there, and the table that it makes."""
    from hwmodel.vary.sweep import parts

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    with _folder(sweep=sweep, tiny=tiny) as folder:
        writer = parts._WRITERS[".csv"]
        parts._WRITERS[".csv"] = stop
        with contextlib.suppress(AssertionError):
            ran(["sweep", "sweep.yaml", "--jobs", "1", "--out", "made.csv"], folder)
        parts._WRITERS[".csv"] = writer
        found = _files(folder)
        ran(["sweep", "sweep.yaml", "--jobs", "1", "--out", "made.csv", "--resume"], folder)
        right = (folder / "made.csv").read_bytes()
    assert any(name.endswith("part-000000.txt") for name in found), sorted(found)
    return found, right


@cache
def trained() -> Files:
    """A run of one epoch: its trace, and its checkpoint."""
    with _folder() as folder:
        ran(["train", "--epochs", "1", "--trace", "made.json"], folder)
        return _files(folder)


@cache
def cached(tiny: str) -> Files:
    """A cache of tilings, and the command's table beside it."""
    with _folder(tiny=tiny) as folder, switched(cache_folder=folder / "cache"):
        words = ["report", "tiny.yaml", "--hardware", "ascend", "--method", "bold", "--accounting",
                 "full", "--csv", "-"]  # fmt: skip
        table = ran(words, folder)
        return _files(folder) | {"right.csv": table.encode()}


@contextlib.contextmanager
def switched(cache_folder: Path) -> Iterator[None]:
    """Keep tilings in a folder meanwhile, and remember none from before."""
    from hwmodel.tiling import cache as on_disk
    from hwmodel.tiling.tile import tile

    before = os.environ.get("HWMODEL_CACHE", "off")
    os.environ["HWMODEL_CACHE"] = str(cache_folder)
    tile.cache_clear()
    try:
        yield
    finally:
        os.environ["HWMODEL_CACHE"] = before
        for name, file in [*on_disk._files.items()]:
            if file is not None:
                file.close()
            del on_disk._files[name]
        tile.cache_clear()


@cache
def bundles(tiny: str) -> tuple[bytes, ...]:
    """Bundles of a comparison and of a report, with files of one's own."""
    made = []
    for words in (["compare", "tiny.yaml", "--hardware", "chip.yaml", "--methods", "fp,own.yaml"],
                  ["report", "tiny.yaml", "--hardware", "../chip.yaml", "--method", "fp"]):  # fmt: skip
        with _folder(tiny=tiny, chip=CHIP, own=METHOD) as folder:
            inner = folder / "inner"
            inner.mkdir()
            (inner / "tiny.yaml").write_text(tiny)
            (inner / "chip.yaml").write_text(CHIP)
            (inner / "own.yaml").write_text(METHOD)
            ran([*words, "-o", "t.csv"], inner)
            ran(["bundle", "t.csv", "-o", "s.zip"], inner)
            made.append((inner / "s.zip").read_bytes())
    return tuple(made)


@cache
def bundled_table(tiny: str) -> tuple[bytes, bytes]:
    """A table of the small network, and its bundle."""
    with _folder(tiny=tiny) as folder:
        words = ["compare", "tiny.yaml", "--hardware", "ascend", "--methods", "fp,bold"]
        ran([*words, "-o", "t.csv"], folder)
        ran(["bundle", "t.csv", "-o", "s.zip"], folder)
        return (folder / "t.csv").read_bytes(), (folder / "s.zip").read_bytes()


def bytes_case(random: Random, samples: list[bytes]) -> bytes:
    """A file of `samples` with bytes changed, cut, doubled or put in."""
    content = random.choice(samples)
    while (changed := spoiled(random, content)) == content and random.random() < 0.9:
        pass
    return changed[: random.randrange(len(changed) + 1)] if random.random() < 0.2 else changed


NAMES = ["../a", "/etc/passwd", "a\\b", "C:a", "", "a/", "lock.json", "T.CSV", "t.csv", "a" * 300]


def zip_case(random: Random, samples: list[bytes]) -> bytes:
    """A bundle whose files, lock or bytes were changed; often with hashes that fit."""
    if random.random() < 0.3:
        return bytes_case(random, samples)
    with zipfile.ZipFile(io.BytesIO(random.choice(samples))) as archive:
        files = [(name, archive.read(name)) for name in archive.namelist()]
    lock = next(content for name, content in files if name == LOCK)
    rest = [(name, content) for name, content in files if name != LOCK]
    if random.random() < 0.6:
        at = random.randrange(len(rest))
        name, content = rest[at]
        rest[at] = name, _inner(random, name, content)
    lock = _lock_case(random, lock, dict(rest))
    files = [*rest, (LOCK, lock)]
    if random.random() < 0.3:
        files.insert(random.randrange(len(files)), (random.choice(NAMES), b"x"))
    if random.random() < 0.2:
        del files[random.randrange(len(files))]
    stream = io.BytesIO()
    with contextlib.suppress(ValueError), zipfile.ZipFile(stream, "w") as archive:
        for name, content in files:
            entry = zipfile.ZipInfo(name or "x")
            entry.filename = name
            entry.compress_type = random.choice(
                [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED] * 5 + [zipfile.ZIP_LZMA]
            )
            entry.external_attr = (
                random.choice([0o100644, 0o100644, 0o100644, 0o120777, 0o010644, 0]) << 16
            )
            archive.writestr(entry, content)
    return spoiled(random, stream.getvalue()) if random.random() < 0.3 else stream.getvalue()


def _inner(random: Random, name: str, content: bytes) -> bytes:
    if name.endswith(".yaml"):
        return yaml_case(random, [content.decode()])
    return spoiled(random, content)


def _lock_case(random: Random, lock: bytes, files: dict[str, bytes]) -> bytes:
    """The lock, mostly with the hashes of the files as they are, sometimes spoiled."""
    if random.random() < 0.7:
        document = json.loads(lock)
        for held in (document["table"], *document["inputs"]):
            if held["file"] in files:
                held["sha256"] = hashlib.sha256(files[held["file"]]).hexdigest()
        lock = flow(document).encode()
    return json_case(random, [lock.decode()]) if random.random() < 0.3 else lock


Law = Callable[[Path], list[str]]


def same_table(name: str, right: bytes) -> Law:
    """A law: where the command wrote its table at all, it is the right one."""

    def law(folder: Path) -> list[str]:
        made = folder / name
        wrong = made.exists() and made.read_bytes() != right
        return [f"{name} is not what the undamaged run writes"] if wrong else []

    return law
