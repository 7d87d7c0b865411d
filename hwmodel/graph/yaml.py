"""A network as the YAML that a person would write: one line a layer, defaults left out, equal
rounds as one repeated list. Reading it gives an equal network.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from hwmodel.graph.layers import INPUT, Layer
from hwmodel.graph.renaming import BEFORE, renamed

__all__ = ["network_yaml"]

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_.+-]*")
_NO_NAME = re.compile(r"[^A-Za-z0-9_.+-]")  # as in resnet18@192
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_ROUND = re.compile(r"\.(\d+)\.")


class _Written(Protocol):
    """A network, as far as its file says it."""

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def label(self) -> str | None: ...
    @property
    def sources(self) -> dict[str, str]: ...
    @property
    def input(self) -> tuple[int, int, int]: ...
    @property
    def steps(self) -> int: ...
    @property
    def zeros(self) -> float | Mapping[str, float]: ...
    @property
    def layers(self) -> tuple[Layer, ...]: ...


def network_yaml(network: _Written) -> str:
    """Return the text of the network's file."""
    lines = [
        "version: 1",
        f"name: {_scalar(re.sub(_NO_NAME, '-', network.name))}",
        f"title: {_scalar(network.title)}",
        *([f"label: {_scalar(network.label)}"] if network.label else []),
        *([f"sources: {_flow(network.sources)}"] if network.sources else []),
        f"input: {_flow(list(network.input))} # C, H, W of one image",
        *([f"steps: {network.steps}"] if network.steps > 1 else []),
        *([f"zeros: {_flow(network.zeros)}"] if network.zeros else []),
        "layers:",
    ]
    at, layers = 0, network.layers
    while at < len(layers):
        found = _repeated(layers, at)
        if found is None:
            lines.append(f"  - {_flow(_fields(layers[at]))}")
            at += 1
            continue
        name, first, rounds, inside = found
        lines += [f"  - name: {_scalar(name)}", f"    repeat: {rounds}"]
        lines += [f"    first: {first}"] * (first > 0)
        lines += ["    layers:", *(f"      - {_flow(_fields(layer))}" for layer in inside)]
        at += rounds * len(inside)
    return "\n".join(lines) + "\n"


_Repeated = tuple[str, int, int, list[Layer]]  # name, number of the first round, rounds, layers


def _repeated(layers: Sequence[Layer], at: int) -> _Repeated | None:
    """Find the longest run of equal rounds that begins here; None if there are not even two."""
    best: _Repeated | None = None
    for match in _ROUND.finditer(layers[at].name):
        prefix, first = layers[at].name[: match.start()], match.group(1)
        if first != str(int(first)):  # 01 is no number of a round
            continue
        rounds = list(_rounds(layers, at, prefix, int(first)))
        if len(rounds) > 1 and (not best or len(rounds) > best[2]):
            best = prefix, int(first), len(rounds), rounds[0]
    return best


def _rounds(layers: Sequence[Layer], at: int, prefix: str, k: int) -> Iterator[list[Layer]]:
    """Yield rounds from number `k` on, under their names within, as long as they are equal."""
    before = layers[at - 1].name if at else INPUT
    model: list[Layer] | None = None
    while True:
        start = f"{prefix}.{k}."
        end = at
        while end < len(layers) and layers[end].name.startswith(start):
            end += 1
        inside = _within(layers[at:end], start, before)
        if not inside or (model is not None and inside != model):
            return
        model = inside
        yield inside
        before, at, k = layers[end - 1].name, end, k + 1


def _within(layers: Sequence[Layer], start: str, before: str) -> list[Layer] | None:
    """Name the layers of one round as within a list; None where that would be ambiguous."""
    names = {layer.name: layer.name.removeprefix(start) for layer in layers}
    outside = {i for layer in layers for i in (*(layer.inputs or ()), layer.shares) if i} - set(
        names
    )
    if {BEFORE, *names.values()} & outside or BEFORE in names.values():
        return None
    return [renamed(layer, names | {before: BEFORE}) for layer in layers]


def _fields(layer: Layer) -> dict[str, Any]:
    """Return the fields that a file states: name and kind, then all that differ from defaults."""
    said = layer.model_dump(exclude_defaults=True)
    head = {"name": layer.name, "kind": layer.kind}
    pairs = {"kernel", "stride", "dilation", "padding", "output_padding", "size"}
    return head | {
        key: _short(value) if key in pairs else value
        for key, value in said.items()
        if key not in head and value is not None
    }


def _short(numbers: Sequence[int]) -> int | list[int]:
    """Shorten equal numbers: to one for all axes, or to two for rows and columns."""
    listed = list(numbers)
    if len(listed) == 4 and listed[:2] == listed[2:]:
        listed = listed[:2]
    return listed[0] if len(set(listed)) == 1 else listed


def _flow(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_scalar(k)}: {_flow(v)}' for k, v in value.items())}}}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_flow, value))}]"
    return _scalar(value)


def _scalar(value: Any) -> str:
    """Write a number or word as it is, other text in double quotes, which JSON and YAML share."""
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return json.dumps(value, ensure_ascii=False)
