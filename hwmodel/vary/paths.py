"""Dotted paths to single values of a spec: `levels.L1.capacity`, `arithmetic.mac.32`, `flip_rate`.

A path names fields as the spec's file does. Entries of a list go by their `name`, prices by
operation and width, entries without either by their number from 1. A memory has `capacity`,
`read_energy` and `write_energy`, however its file states them; `access_energy` is both energies.
What is changed is checked by the same rules as a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple, TypeVar

from hwmodel.errors import SpecError, near, nearest
from hwmodel.graph.network import Network, family_member, zoo
from hwmodel.graph.zoo import family_arguments
from hwmodel.specs.accounting import Accounting, RelativePrice
from hwmodel.specs.files import NamedSpec, SpecModel, validate
from hwmodel.specs.hardware import Buffer, Hardware, Price, SplitLevel
from hwmodel.specs.method import Method, own_formats
from hwmodel.specs.mistakes import alternatives
from hwmodel.specs.spread import Spread
from hwmodel.specs.stated import Energy

__all__ = [
    "PLAIN",
    "Inputs",
    "Known",
    "Leaf",
    "Scalar",
    "changed",
    "is_known",
    "leaves",
    "replaced",
    "replaced_all",
    "see_apart",
]

Spec = TypeVar("Spec", bound=SpecModel)
Made = TypeVar("Made")
Step = str | int  # a field or a key; the place in a list
Scalar = bool | int | float | str | None
ROOTS = ("network", "hardware", "method", "accounting", "batch")

_BOTH = ("access_energy", "efficiency", "energy")  # how a file states reading and writing as one
_EACH = ("read_energy", "write_energy")
# The figures that words set which stand for several, or for another; of prices, too.
_FIGURES: dict[Step, tuple[Step, ...]] = dict.fromkeys(_BOTH, (*_EACH, "access_energy"))
_FIGURES["bandwidth"] = ("read_bandwidth", "write_bandwidth")
_PRICE: dict[type, str] = {Price: "energy", RelativePrice: "macs"}  # what a path to an entry means
PLAIN = {  # the units in which numbers of these fields are
    "clock": "Hz",
    "static_power": "W",
    "priced": "V",
    "run": "V",
    "bandwidth": "B/s",
    "read_bandwidth": "B/s",
    "write_bandwidth": "B/s",
}
_EITHER = (False, True)
_UNMOVED = {"version", "level", "name", "reference"}  # they say what a thing is, not how large
_UNITS = {"bits": "bit", "macs": "MAC"}  # by the last word of a field's name
_UNITS |= dict.fromkeys(("weights", "inputs", "signal"), "bit")


class Leaf(NamedTuple):
    """One value of a spec that can be moved."""

    path: str
    value: Scalar  # in `unit`; None: unlimited, or not stated
    unit: str  # "" for a plain number or a choice
    number: bool  # whether numbers are allowed
    whole: bool  # whether they must be whole
    choices: tuple[Scalar, ...]  # words, yes or no, None: what is allowed beside numbers
    part_of: str = ""  # path of the one figure by which the file states this and something else


class Inputs(NamedTuple):
    """The inputs of one evaluation; a path into them begins with the name of the field."""

    network: Network
    hardware: Hardware
    method: Method
    accounting: Accounting
    batch: int = 1


def changed(inputs: Inputs, changes: Mapping[str, Any]) -> Inputs:
    """Replace the values at some paths of the inputs, all at once.

    A path is `batch`, or begins with `hardware.`, `method.`, `accounting.` or `network.`. Of a
    bundled network the arguments of its family are fields, too: `network.blocks`.

    Raises: SpecError for a path that is none, or a value that breaks a rule.
    """
    by_root: dict[str, dict[str, Any]] = {}
    for path, value in changes.items():
        root, _, rest = path.partition(".")
        if root not in ROOTS or (root == "batch") == bool(rest):
            hint = nearest(root, ROOTS) if root not in ROOTS else f"{root} has fields"
            hint = "batch has no fields" if root == "batch" else hint
            raise SpecError(f"{path!r} is no path to a value: {hint}")
        by_root.setdefault(root, {})[rest] = value
    new: dict[str, Any] = {}
    for root, inner in by_root.items():
        if root == "batch":
            new[root] = inner[""]
        elif root == "network":
            new[root] = _network(inputs.network, inner)
        else:
            new[root] = replaced_all(getattr(inputs, root), inner)
    return inputs._replace(**new)


def replaced(spec: Spec, path: str, value: Any) -> Spec:
    """Replace the value at a path of a spec; check the result as if read from a file.

    Args:
        value: as the file would say it ("64 KiB"), or a number in the unit that `leaves` gives.

    Raises: SpecError for a path that is none (with the nearest), or a value that breaks a rule.
    """
    return replaced_all(spec, {path: value})


def replaced_all(spec: Spec, changes: Mapping[str, Any], known: Known | None = None) -> Spec:
    """Replace several values of a spec at once: only the result is checked, no step between.

    Args:
        known: what earlier changes have rebuilt, for many that move the same parts alike.

    Raises: SpecError, as `replaced`.
    """
    where = f"{spec.KIND} {spec.name}" if isinstance(spec, NamedSpec) else type(spec).__name__
    known = Known() if known is None else known
    tree: dict[Step, Any] = {}
    if len(changes) > 1:
        known.of(spec, "\n".join(changes), partial(see_apart, spec, tuple(changes)))
    for path, value in changes.items():
        *way, last = known.of(spec, path, partial(_located, spec, path, where))
        inner = tree
        for step in way:
            inner = inner.setdefault(step, {})
        inner[last] = _New(value)
    with own_formats(getattr(spec, "formats", None)):
        rebuilt: Spec = _rebuilt(spec, tree, where, known)
    return rebuilt


def see_apart(spec: SpecModel, paths: Sequence[str]) -> None:
    """See that no two paths set one figure, by whatever words. Raises: SpecError."""
    where = f"{spec.KIND} {spec.name}" if isinstance(spec, NamedSpec) else type(spec).__name__
    set_by: dict[tuple[Step, ...], str] = {}
    for path in paths:
        *way, last = _located(spec, path, where)
        for one in dict.fromkeys((last, *_FIGURES.get(last, ()))):
            figure = (*way, one)
            if figure in set_by:
                raise SpecError(f"{where}: {set_by[figure]} and {path} set one figure; give one")
            set_by[figure] = path
    for figure, path in set_by.items():
        for size in range(1, len(figure)):
            if outer := set_by.get(figure[:size]):
                raise SpecError(f"{where}: {path} is a part of {outer}; give one of them")


class Known:
    """What was made of a part of a spec; the oldest is forgotten first."""

    MOST = 4096

    def __init__(self) -> None:
        self._made: dict[tuple[int, str], tuple[Any, Any]] = {}

    def of(self, part: Any, what: str, make: Callable[[], Made]) -> Made:
        """Return what is known of a part, or make it."""
        key = id(part), what
        if key not in self._made:
            self._made[key] = part, make()  # the part is kept, so that its id is
            if len(self._made) > self.MOST:
                del self._made[next(iter(self._made))]
        made: Made = self._made[key][1]
        return made


class _New(NamedTuple):
    value: Any


def _rebuilt(old: Any, tree: Mapping[Step, Any] | _New, where: str, known: Known) -> Any:
    """Rebuild a value with the new values that a tree of steps holds, and check it."""
    if isinstance(tree, _New):
        return tree.value
    if isinstance(old, SpecModel):
        fields = dict(known.of(old, "", partial(_stated, old)))
        for name, inner in tree.items():
            below, part = f"{where}, {name}", getattr(old, str(name))
            _put(fields, str(name), _rebuilt(part, inner, below, known), old)
        return validate(type(old), fields, where)
    if isinstance(old, dict):
        return old | {
            key: _rebuilt(old.get(key), inner, where, known) for key, inner in tree.items()
        }
    entries = list(old)
    for index, inner in tree.items():
        part = entries[int(index)]
        named = f"{where}.{_key(part, int(index))}"
        make = partial(_rebuilt, part, inner, named, known)
        entries[int(index)] = known.of(part, f"{named} {inner}", make)
    return tuple(entries)


def _stated(model: SpecModel) -> dict[str, Any]:
    """Return the fields that a model was given, in the form in which it takes them."""
    fields = {name: getattr(model, name) for name in sorted(model.model_fields_set)}
    if isinstance(model, Buffer):
        fields["capacity"] = _size(model.capacity_bits)
    if isinstance(model, Hardware) and model.normalised_to:
        fields["reference"] = model.normalised_to  # 1 MAC stays what it is where its price moves
    return fields


def _size(capacity: Any) -> Any:
    if capacity is None:
        return "unlimited"
    is_number = isinstance(capacity, (int, float)) and not isinstance(capacity, bool)
    return f"{capacity!r} bit" if is_number else capacity


def _put(fields: dict[str, Any], name: str, value: Any, model: SpecModel) -> None:
    """Set a field; energies stated in another way give way to it."""
    if isinstance(model, Buffer) and name in (*_BOTH, *_EACH):
        if name in _EACH:
            fields |= {n: fields.get(n, e) for n, e in zip(_EACH, model.energies, strict=True)}
        for other in _BOTH if name in _EACH else (*_BOTH, *_EACH):
            fields.pop(other, None)
    if isinstance(model, Price) and name in ("energy", "efficiency"):
        fields.pop("efficiency" if name == "energy" else "energy", None)
    if name in PLAIN and isinstance(value, (int, float)) and not isinstance(value, bool):
        value = f"{value!r} {PLAIN[name]}"
    fields[name] = _size(value) if name == "capacity" else value


def _located(spec: SpecModel, path: str, where: str) -> tuple[Step, ...]:
    """Return the steps from a spec to the value at a path. Raises: SpecError."""
    value: Any = spec
    steps: tuple[Step, ...] = ()
    rest = path
    while rest:
        known = _places(value)
        fitting = [name for name in known if rest == name or rest.startswith(f"{name}.")]
        if not fitting and isinstance(value, dict):
            return (*steps, rest)  # a key that is not there yet; whether it may be is checked
        if not fitting:
            word = rest.partition(".")[0]
            hint = _within(spec, path) if rest == path and not near(word, known) else ""
            hint = hint or nearest(word, known)
            own = [one.name for one in value.split] if isinstance(value, SplitLevel) else []
            if own and (word == "split" or word in own):
                name = word if word in own else own[0]
                hint = f"its memories have names of their own, as levels.{name}"
            raise SpecError(f"{where}: {path!r} is no path to a value: {hint}")
        name = max(fitting, key=len)
        for step in known[name]:
            value = getattr(value, step) if isinstance(step, str) and not isinstance(
                value, dict) else value[step]  # fmt: skip
        steps += known[name]
        rest = rest[len(name) + 1 :]
    if isinstance(value, tuple(_PRICE)):
        return (*steps, _PRICE[type(value)])
    if isinstance(value, SpecModel):
        fields = ", ".join(_places(value))
        raise SpecError(f"{where}: {path!r} is no single value: it has {fields}")
    return steps


def _within(spec: SpecModel, path: str) -> str:
    """The hint where a path leaves out its first step; "" where it does not."""
    without = {leaf.path.partition(".")[2]: leaf.path for leaf in leaves(spec)}
    close = path if path in without else near(path, without)
    return f"did you mean {without[close]!r}?" if close else ""


def _places(value: Any) -> dict[str, tuple[Step, ...]]:
    """Return the words with which a path may go on from a value, and the steps of each."""
    if isinstance(value, SpecModel):
        return {name: (name,) for name in type(value).model_fields if name != "split"}
    if isinstance(value, dict):
        return {str(key): (key,) for key in value}
    if not isinstance(value, (tuple, list)):
        return {}
    found: dict[str, tuple[Step, ...]] = {}
    for index, entry in enumerate(value):
        found[_key(entry, index)] = (index,)
    for index, entry in enumerate(value):  # memories of a split level have names of their own
        if isinstance(entry, SplitLevel):
            found |= {b.name: (index, "split", i) for i, b in enumerate(entry.split)}
    return found


def _key(entry: Any, index: int) -> str:
    """Return the word for an entry of a list."""
    if isinstance(entry, (Price, RelativePrice)):
        return f"{entry.operation}.{entry.bits}"
    return str(getattr(entry, "name", index + 1))


def leaves(spec: SpecModel) -> tuple[Leaf, ...]:
    """List every number and every choice of a spec, in the order of its file.

    Where a memory's file states one energy for reading and writing, `access_energy` is a leaf,
    and `read_energy` and `write_energy` are parts of it.
    """
    unit = spec.unit if isinstance(spec, Hardware) else ""
    return tuple(_leaves(spec, "", unit))


def _leaves(value: Any, path: str, unit: str) -> Iterator[Leaf]:
    if isinstance(value, Buffer):
        yield from _memory_leaves(value, path, unit)
        yield from _spread_leaves(value, path, unit)
    elif isinstance(value, Price):
        yield Leaf(path, value.energy_per_operation, unit, True, False, ())
        yield Leaf(f"{path}.operations", value.operations, "", True, True, ())
    elif isinstance(value, RelativePrice):
        yield Leaf(path, value.macs, "MAC", True, False, ())
    elif isinstance(value, SpecModel):
        yield from _model_leaves(value, path, unit)
    elif isinstance(value, tuple):
        yield from _list_leaves(value, path, unit)


def _list_leaves(entries: tuple[Any, ...], path: str, unit: str) -> Iterator[Leaf]:
    """Yield the leaves of a list's entries; memories of a split level have names of their own."""
    for index, entry in enumerate(entries):
        parts: tuple[Any, ...] = (entry,)
        if isinstance(entry, SplitLevel):
            yield from _spread_leaves(entry, f"{path}.{entry.name}", unit)
            parts = entry.split
        for place, inner in enumerate(parts, index):
            yield from _leaves(inner, f"{path}.{_key(inner, place)}", unit)


def _model_leaves(model: SpecModel, path: str, unit: str) -> Iterator[Leaf]:
    """Yield the leaves of every field that is stated or has a value of its own."""
    for name, field in type(model).model_fields.items():
        inner = getattr(model, name)
        absent = inner is None and not field.is_required()
        if name not in _UNMOVED and not absent:
            below = f"{path}.{name}" if path else name
            if isinstance(inner, Energy):
                yield Leaf(below, inner.value, f"{unit} a cycle", True, False, ())
            elif name in PLAIN:
                yield Leaf(below, inner[0], PLAIN[name], True, False, ())
            else:
                yield from _leaves(inner, below, unit)
                yield from _field_leaves(type(model), name, inner, below)


def _memory_leaves(memory: Buffer, path: str, unit: str) -> Iterator[Leaf]:
    """Yield capacity and energies of a memory."""
    yield Leaf(f"{path}.capacity", memory.capacity_bits, "bit", True, True, ())
    read, write = (energy.value for energy in memory.energies)
    as_one = f"{path}.access_energy" if memory.read_energy is None and read == write else ""
    if as_one:
        yield Leaf(as_one, read, f"{unit}/bit", True, False, ())
    yield Leaf(f"{path}.read_energy", read, f"{unit}/bit", True, False, (), as_one)
    yield Leaf(f"{path}.write_energy", write, f"{unit}/bit", True, False, (), as_one)
    for name in ("bandwidth", "read_bandwidth", "write_bandwidth"):
        rate = getattr(memory, name)
        if rate is not None:
            yield Leaf(f"{path}.{name}", rate.value, "B/s", True, False, ())


def _spread_leaves(level: Spread, path: str, unit: str) -> Iterator[Leaf]:
    """Yield how memories of a level lie side by side, as far as it is stated."""
    sizes = level.fanout if isinstance(level.fanout, dict) else {"": level.fanout}
    for axis, size in sizes.items():
        if size is not None:
            yield Leaf(f"{path}.fanout{'.' if axis else ''}{axis}", size, "", True, True, ())
    if level.fanout is not None:
        yield Leaf(f"{path}.multicast", level.multicast is not False, "", False, False, _EITHER)
        yield Leaf(f"{path}.reduction", level.reduction is not False, "", False, False, _EITHER)
    if level.hop_energy is not None:
        yield Leaf(f"{path}.hop_energy", level.hop_energy.value, f"{unit}/bit", True, False, ())


def _field_leaves(kind: type[SpecModel], name: str, value: Any, path: str) -> Iterator[Leaf]:
    """Yield the leaf of a field, or the leaves of its keys; none for text, lists and models."""
    schema = _schema(kind)
    inside = schema["properties"].get(name, {})
    values = {path: value}
    if isinstance(value, dict):
        of = (one.get("additionalProperties") for one in alternatives(inside, schema))
        inside = next(filter(None, of), {})
        values = {f"{path}.{key}": inner for key, inner in value.items()}
    number, whole, choices = _allowed(inside, schema)
    unit = _UNITS.get(name.split("_")[-1], "") if number else ""
    for place, inner in values.items():
        if (number or len(choices) > 1) and not isinstance(inner, (tuple, SpecModel)):
            yield Leaf(place, inner, unit, number, whole, choices)


def _allowed(inside: Any, schema: Any) -> tuple[bool, bool, tuple[Scalar, ...]]:
    """Return whether a field takes numbers, whether only whole ones, and its other values."""
    types, choices = set(), []
    for one in alternatives(inside, schema):
        types.add(one.get("type"))
        choices += one.get("enum", [one["const"]] if "const" in one else [])
    choices += [False, True] if "boolean" in types else []
    choices += [None] if "null" in types and types & {"integer", "number"} else []
    return bool(types & {"integer", "number"}), "number" not in types, tuple(choices)


@cache
def _schema(kind: type[SpecModel]) -> dict[str, Any]:
    return kind.model_json_schema()


def _network(network: Network, changes: Mapping[str, Any]) -> Network:
    """Replace arguments of a network's family, or fields of its layers."""
    bundled = network.name in zoo() and network == family_member(network.name)
    arguments = family_arguments(network.name) if bundled else {}
    of_family = {path: value for path, value in changes.items() if path in arguments}
    if of_family:
        network = family_member(network.name, of_family)
    others = {path: value for path, value in changes.items() if path not in arguments}
    first = {path.split(".")[0] for path in others}
    unknown = sorted(first - set(Network.model_fields))
    if unknown:
        hint = nearest(unknown[0], [*arguments, *Network.model_fields])
        raise SpecError(f"network {network.name}: {unknown[0]!r} is no path to a value: {hint}")
    network = replaced_all(network, others) if others else network
    network.nodes()  # shapes must still fit
    return network


def is_known(spec: SpecModel, path: str) -> bool:
    """Say whether a path leads to a value of a spec, or to an argument of a bundled network."""
    if isinstance(spec, Network) and spec.name in zoo() and path in family_arguments(spec.name):
        return True
    try:
        _located(spec, path, "")
    except SpecError:
        return False
    return True
