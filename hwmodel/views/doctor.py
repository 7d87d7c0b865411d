"""Checks an installation: versions, extras, bundled data, a place to write to."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from hwmodel import __version__
from hwmodel.graph.zoo import zoo
from hwmodel.specs.files import bundled, folder
from hwmodel.tiling import cache
from hwmodel.views.catalogue import FILES

__all__ = ["EXTRAS", "Finding", "findings"]

EXTRAS = {
    "cluster": "sweeps on many machines",
    "compiled": "a faster tiling search and trainer",
    "data": "images to train on",
    "excel": "tables as workbooks",
    "onnx": "networks from ONNX files",
    "parquet": "tables as Parquet",
    "torch": "networks from PyTorch modules",
}


class Finding(NamedTuple):
    """One line of the diagnosis."""

    what: str
    found: str
    right: bool = True


def findings(reports: Path) -> Iterator[Finding]:
    """Yield what is installed and what is missing; a missing extra is no fault."""
    yield Finding("hwmodel", __version__)
    yield Finding("Python", f"{platform.python_version()} on {platform.system()}")
    needs = [_parsed(line) for line in metadata.requires("hwmodel") or ()]
    for package, least, extra in needs:
        if not extra:
            version = _version(package)
            right = version is not None and _numbers(version) >= _numbers(least)
            yield Finding(package, f"{version or 'missing'} (needs {least} or later)", right)
    for name, purpose in EXTRAS.items():
        packages = [(package, _version(package)) for package, _, extra in needs if extra == name]
        if all(version for _, version in packages):
            there = ", ".join(f"{package} {version}" for package, version in packages)
            yield Finding(f"extra {name}", f"{there}: {purpose}")
        else:
            hint = f"pip install 'hwmodel[{name}]'"
            yield Finding(f"extra {name}", f"not installed: {purpose} ({hint})")
    for word, kind in FILES.items():
        count = len(bundled(kind))
        yield Finding(f"{word} files", f"{count} in {folder(kind.FOLDER)}", count > 0)
    yield Finding("networks", f"{len(zoo())} in {folder('graph/families')}")
    yield Finding("cache", f"{cache.folder() or 'off'}: tilings found before (HWMODEL_CACHE)")
    yield _writable(reports)


def _parsed(requirement: str) -> tuple[str, str, str]:
    """Split a requirement into package, least version and extra ("" where it is always needed).

    >>> _parsed("onnx>=1.22; extra == 'onnx'"), _parsed("numpy>=2.0")
    (('onnx', '1.22', 'onnx'), ('numpy', '2.0', ''))
    """
    package, least, _, extra = re.fullmatch(
        r"([\w.-]+)\s*>=\s*([\d.]+)\s*(;.*extra == ['\"](\w+)['\"].*)?", requirement
    ).groups("")  # type: ignore[union-attr]
    return package, least, extra


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def _writable(reports: Path) -> Finding:
    """See whether outputs can be written to the default folder."""
    place = reports if reports.exists() else reports.resolve().parent
    right = place.is_dir() and os.access(place, os.W_OK)
    where = f"{reports}/ in {reports.resolve().parent}"
    return Finding("outputs", f"{where} {'can' if right else 'cannot'} be written", right)
