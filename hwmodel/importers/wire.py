"""Reads an ONNX file without its weights: elements of large tensors are passed over.

A file is a protocol-buffer message: fields, each a number with a type and, for messages, strings
and packed lists, a length. Fields that hold a tensor's elements are left out where they are long;
everything else is copied as it stands. So a file of 2 GB needs the memory of its graph.

Source: protobuf.dev, "Encoding"; field numbers from onnx.proto.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from hwmodel.errors import SpecError

__all__ = ["without_weights"]

LONG = 1024  # B; shapes, indices and scales are shorter
MAX_NODES = 100_000
MAX_FIELDS = 2_000_000  # of the whole file, as far as it is gone through


class _Message(NamedTuple):
    inner: dict[int, str]  # field number -> message type
    elements: frozenset[int] = frozenset()  # fields with a tensor's elements


_MESSAGES = {
    "model": _Message({7: "graph", 25: "function"}),
    "function": _Message({7: "node"}),
    "graph": _Message({1: "node", 5: "tensor", 15: "sparse"}),
    "node": _Message({5: "attribute"}),
    "attribute": _Message({5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse"}),
    "tensor": _Message({}, frozenset({4, 5, 6, 7, 9, 10, 11})),
    "sparse": _Message({1: "tensor", 2: "tensor"}),
}
_FIXED = {1: 8, 5: 4}  # wire type -> bytes
_VARINT, _LENGTH = 0, 2


def without_weights(raw: memoryview, where: str) -> bytes:
    """Return the message with long elements left out. Raises: SpecError where it is none."""
    try:
        return b"".join(_lean(raw, "model", where, 0, [0]))
    except (IndexError, RecursionError):
        raise SpecError(f"{where}: ends in the middle of a field, or is no ONNX file") from None


def _lean(
    raw: memoryview, kind: str, where: str, depth: int, count: list[int]
) -> Iterator[bytes | memoryview]:
    """Yield the pieces of a message; long inner messages are gone through in turn."""
    if depth > 60:
        raise SpecError(f"{where}: graphs within graphs, more than 60 deep")
    message, at, nodes = _MESSAGES[kind], 0, 0
    while at < len(raw):
        start = at
        tag, body, at = _field(raw, at)
        field, size = tag >> 3, at - body
        nodes += kind == "graph" and field == 1
        _see_limits(nodes, count, where)
        if size <= LONG:
            yield raw[start:at]
        elif field in message.inner:
            inner = b"".join(_lean(raw[body:at], message.inner[field], where, depth + 1, count))
            yield _number(tag) + _number(len(inner)) + inner
        elif field not in message.elements:
            yield raw[start:at]


def _see_limits(nodes: int, count: list[int], where: str) -> None:
    """Count one more field. Raises: SpecError where there are too many."""
    count[0] += 1
    if nodes > MAX_NODES:
        raise SpecError(f"{where}: more than {MAX_NODES:,} operators")
    if count[0] > MAX_FIELDS:
        raise SpecError(f"{where}: more than {MAX_FIELDS:,} fields")


def _field(raw: memoryview, at: int) -> tuple[int, int, int]:
    """Return the tag of the field at a place, where its content begins, and where it ends."""
    tag, at = _varint(raw, at)
    wire = tag & 7
    if wire == _LENGTH:
        size, body = _varint(raw, at)
        end = body + size
    else:
        body = at
        end = _varint(raw, at)[1] if wire == _VARINT else at + _FIXED.get(wire, len(raw) + 1)
    if end > len(raw) or tag < 8:  # no field has the number 0
        raise IndexError
    return tag, body, end


def _varint(raw: memoryview, at: int) -> tuple[int, int]:
    """Return a number of 7 bits a byte, the lowest first, and where it ends."""
    value = shift = 0
    while True:
        byte = raw[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise IndexError


def _number(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
