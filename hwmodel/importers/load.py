"""Loads a network: by a bundled name, from a YAML or ONNX file, or as it is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from hwmodel.errors import ShapeError, SpecError, near
from hwmodel.graph.network import BEFORE, Network, NetworkFile, Repeat, family_member
from hwmodel.graph.zoo import family_arguments, zoo
from hwmodel.specs.arguments import expect
from hwmodel.specs.files import is_path, read_yaml, validate
from hwmodel.specs.measured import measured_network
from hwmodel.specs.mistakes import line_of

__all__ = ["load_network"]


def load_network(
    what: str | Path | Network, input_shapes: Mapping[str, Sequence[int]] | None = None
) -> Network:
    """Return the network of a bundled name or of a YAML or ONNX file; or a network as it is.

    Args:
        input_shapes: of an ONNX file's inputs that leave dimensions open.

    Raises: NameUnknown, SpecError, ShapeError; HwmodelError for what is neither.
    """
    expect((str, Path, Network), "network", what, "a name, a path or a Network")
    if isinstance(what, (str, Path)) and str(what).lower().endswith(".onnx"):
        from hwmodel.importers.onnx import from_onnx

        return from_onnx(what, input_shapes)
    if input_shapes:
        named = what.name if isinstance(what, Network) else what
        raise SpecError(f"{named}: input shapes are given for ONNX files only")
    if isinstance(what, str) and not is_path(what):
        return _bundled(what)
    if not isinstance(what, Network):
        return _read(Path(what))
    what.nodes()  # a wrong graph is refused where it is read
    return what


@cache
def _bundled(name: str) -> Network:
    """A bundled network, built once: its family is part of the program, or measurements have it.

    NAME@192 and NAME@192x256 are it at another image size, where its family has one.
    """
    member, at, size = name.partition("@")
    if name not in zoo() and (document := measured_network(name)):
        return validate(NetworkFile, document, f"network {name}").network()
    network = resized(member, size, name) if at else family_member(name)
    network.nodes()
    return network


def resized(member: str, size: str, name: str) -> Network:
    """Return a bundled network at an image size, as its family takes it. Raises: SpecError."""
    usual = family_arguments(member)
    if "image" not in usual:
        raise SpecError(f"network {name}: {member} has no image size that could be changed")
    if not re.fullmatch(r"[1-9][0-9]{0,8}(x[1-9][0-9]{0,8})?", size):
        raise SpecError(
            f"network {name}: {size!r} is no image size; write {member}@192 or {member}@192x256"
        )
    rows, columns = (list(map(int, size.split("x"))) * 2)[:2]
    square = isinstance(usual["image"], int)
    if square and rows != columns:
        raise SpecError(f"network {name}: images of {member} have as many rows as columns")
    changed = family_member(member, {"image": rows if square else [rows, columns]})
    known = {"name": name, "title": f"{changed.title}, images of {rows} x {columns}"}
    return changed.model_copy(update=known)


def _read(path: Path) -> Network:
    """Read the network of a YAML file; an error in its graph names the line."""
    values = read_yaml(path)
    file = validate(NetworkFile, values, path)
    network = file.network()
    try:
        network.nodes()
    except ShapeError as error:
        for one in (error, *error.others):
            if one.place is not None:
                way = file.way_to(one.place)
                one.where = f"{path}:{line_of(values, way)}"
                one.args = (_as_in_the_list(one.args[0], file, way),)
        raise
    return network


def _as_in_the_list(said: str, file: NetworkFile, way: Sequence[str | int]) -> str:
    """Reword an error about a layer's input with the names of the repeated list that it is in.

    Written out, its layers have longer names, and `before` is gone.
    """
    if len(way) < 4:
        return said
    entry = file.layers[int(way[1])]
    assert isinstance(entry, Repeat)  # nothing else has a way that is so long
    known = [BEFORE, *(layer.name for layer in entry.layers)]
    for name in entry.layers[int(way[3])].inputs or ():
        close = near(name, known)
        if close and name not in known and f"takes {name!r}" in said:
            return f"{said.partition('; did you mean')[0]}; did you mean {close!r}?"
    return said
