"""Files that somebody spoiled: YAML and JSON changed in structure and in bytes, random networks.

Every function draws from a `random.Random`, so that a case is its seed, and hypothesis can shrink
the draws as well.
"""

import json
import math
import re
from copy import deepcopy
from random import Random
from typing import Any

from ruamel.yaml import YAML


class Raw(str):
    """Text that stands in the file as it is."""


NUMBERS: list[Any] = [
    0, -1, 1, 2, 3, 7, 16, 32, 64, 65, 100, 1000, 4000, 2**15, 2**20, 2**31 - 1, 2**31, 2**31 + 1, 2**53 + 1, 2**63 - 1, 2**63, 2**64,
    10**18, 10**30, 0.5, -0.0, 1e-12, 1e12, 1e-320, 5e-324, 1.7e308, 1e-3, Raw(".nan"), Raw(".inf"),
    Raw("-.inf"), Raw("1e400"), Raw("1" + "0" * 5000), Raw("0x" + "f" * 5000), Raw("010"), Raw("0o17"),
    Raw("1_000"), Raw("12:30"), Raw("1e-3"), Raw("+3"),
]  # fmt: skip
WORDS: list[Any] = [
    "", "a", "input", "before", "a" * 81, "a" * 100_000, "=1+1", "../../etc/passwd", "/dev/zero", "\u202eabc",
    "\U0001f600", "\ud800", "\x07\x1b[2J", "\n\n", "tab\tand\x00nul", "ﬁ", "NaN", "inf", "-1 pJ/B", "1e400 pJ/B",
    "0 KiB", "1e300 GiB", "64 KB", "5 pJ/0bit", "nan pJ/B", "1e-300 GB/s/mW", "1e308 nJ/bit", "unlimited",
    Raw("2001-01-01"), Raw("2001-12-14t21:59:43.10-05:00"), Raw("no"), Raw("~"), Raw("? a"), Raw("*a"),
    Raw("&a [*a]"), Raw("!!python/object/apply:os.system [id]"), Raw("!!binary aGk="), Raw("!x y"),
    Raw("{<<: {a: 1}}"), Raw("[" * 200), Raw("{a: " * 30 + "1" + "}" * 30), Raw("%TAG"), Raw("@"), Raw("`"),
    Raw("- - -"), Raw("a: b: c"), Raw("'"), Raw('"\\ud800"'), Raw('"\\x00"'), Raw('"\\e[31m"'),
]  # fmt: skip
OTHERS: list[Any] = [
    None,
    True,
    False,
    [],
    {},
    [[]],
    {"": ""},
    [None],
    {"a": {"b": [1]}},
    [1] * 3000,
]


def yaml_case(random: Random, samples: list[str]) -> bytes:
    """A file of `samples` with a few changes in its structure or its text."""
    text = random.choice(samples)
    if random.random() < 0.8:
        document = YAML(typ="safe", pure=True).load(text)
        text = flow(changed(random, document))
    return spoiled(random, text.encode("utf-8", "surrogatepass"))


def json_case(random: Random, samples: list[str]) -> bytes:
    """The same of a JSON file."""
    text = random.choice(samples)
    if random.random() < 0.8:
        text = flow(changed(random, json.loads(text)))
    return spoiled(random, text.encode("utf-8", "surrogatepass"))


def text_case(random: Random, samples: list[str]) -> bytes:
    """A text with numbers and words put in the place of others, or spoiled."""
    parts = re.split(r"([,;=\n:x])", random.choice(samples))
    for _ in range(random.choice([1, 1, 2, 4])):
        new = random.choice([*NUMBERS, *WORDS])
        parts[random.randrange(len(parts))] = str(new)
    return spoiled(random, "".join(parts).encode("utf-8", "surrogatepass"))


def changed(random: Random, document: Any) -> Any:
    """A document with one to four changes, each at a random place."""
    holder = [document]
    for _ in range(random.choice([1, 1, 1, 2, 3, 4])):
        places = list(_places(holder, 0))
        if not places:
            break
        inside, key = random.choice(places)
        _change(random, inside, key, places)
    return holder[0] if holder else None


def _places(inside: Any, depth: int) -> Any:
    """Every (holder, key) of a document."""
    if depth > 30:
        return
    items = inside.items() if isinstance(inside, dict) else enumerate(inside)
    for key, value in list(items):
        yield inside, key
        if isinstance(value, (dict, list)):
            yield from _places(value, depth + 1)


def _change(random: Random, inside: Any, key: Any, places: list[Any]) -> None:
    kind = random.choice(
        ["number", "number", "word", "other", "swap", "delete", "double", "rename", "wrap"]
    )
    if kind == "delete":
        del inside[key]
    elif kind == "swap":
        other, place = random.choice(places)
        if other is not inside[key]:
            inside[key] = deepcopy(other[place])
    elif kind == "double" and isinstance(inside, list):
        inside.insert(key, inside[key])
    elif kind == "rename" and isinstance(inside, dict):
        inside[random.choice([*WORDS, 5, None, str(key)[:-1]])] = inside.pop(key)
    elif kind == "wrap":
        inside[key] = [inside[key]] if random.random() < 0.5 else {"a": inside[key]}
    else:
        inside[key] = deepcopy(random.choice({"number": NUMBERS, "word": WORDS}.get(kind, OTHERS)))


def flow(value: Any) -> str:
    """YAML in flow style; JSON where every value is one of JSON's."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{flow(k)}: {flow(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(flow, value)) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return json.dumps(value, default=str)


def spoiled(random: Random, content: bytes) -> bytes:
    """Most often the content as it is; else with bytes changed, cut, doubled or put in."""
    if random.random() < 0.7 or not content:
        return content
    data = bytearray(content)
    for _ in range(random.choice([1, 1, 2, 8])):
        at = random.randrange(len(data) + 1)
        kind = random.choice(["flip", "cut", "double", "put"])
        if kind == "flip" and at < len(data):
            data[at] ^= 1 << random.randrange(8)
        elif kind == "cut":
            del data[at : at + random.choice([1, 5, 100])]
        elif kind == "double":
            data[at:at] = data[at : at + random.choice([1, 20, 500])]
        else:
            data[at:at] = random.choice(
                [b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"[" * 50, b"\r", b"\n  ", b"---\n"]
            )
    return bytes(data)


SIZES = [1, 1, 2, 3, 3, 4, 7, 8, 16, 64, 224, 1000, 2**16, 2**31]
MASKS: dict[str, list[Any]] = {
    "kv_heads": SIZES, "causal": [True, False], "window": SIZES, "cache": [True, False],
    "past": [0, *SIZES],
}  # fmt: skip
KINDS: dict[str, dict[str, list[Any]]] = {
    "conv": {"channels": SIZES, "kernel": SIZES, "stride": SIZES, "padding": [0, *SIZES], "dilation": SIZES,
             "groups": SIZES, "bias": [True, False]},
    "conv-transpose": {"channels": SIZES, "kernel": SIZES, "stride": SIZES, "padding": [0, *SIZES],
                       "output_padding": [0, 1], "groups": SIZES},
    "linear": {"features": SIZES, "over": ["all", "channels"], "experts": SIZES},
    "batch-norm": {}, "layer-norm": {}, "rms-norm": {}, "activation": {"function": ["relu", "softmax", "gelu", "method"]},
    "add": {}, "multiply": {}, "concat": {"axis": ["channels", "rows"]}, "scale": {}, "global-average-pool": {},
    "max-pool": {"kernel": SIZES, "stride": SIZES, "padding": [0, *SIZES], "partial": [True, False]},
    "average-pool": {"kernel": SIZES}, "pixel-shuffle": {"factor": SIZES}, "pixel-unshuffle": {"factor": SIZES},
    "upsample": {"factor": SIZES, "size": SIZES}, "slice": {"start": [0, *SIZES], "stop": SIZES},
    "reshape": {}, "expand": {}, "source": {"learned": [True, False, "frozen", "biases"]},
    "uncounted": {"operator": ["X", "=1+1"], "parameters": [0, *SIZES], "known_macs": [0, *SIZES]},
    "attention-scores": {"heads": SIZES, **MASKS}, "attention-context": {"heads": SIZES, **MASKS},
    "rotary": {"heads": SIZES}, "scan": {"states": SIZES}, "combine": {"active": SIZES},
    "dispatch": {"active": SIZES, "distinct": ["expected", "all", *SIZES], "capacity": [0, 0.5, 1.25, 2]},
    "embedding": {"vocabulary": SIZES, "features": SIZES},
}  # fmt: skip


# Each different product is searched, which may take a second: many of them may rightly take minutes.
SEARCHED = {"conv", "conv-transpose", "linear", "attention-scores", "attention-context"}


def network_case(random: Random, samples: list[str]) -> bytes:
    """A network of random layers, some of which fit; or a changed file."""
    if random.random() < 0.3:
        return yaml_case(random, samples)
    layers: list[Any] = []
    names = ["input", "before", "nowhere"]
    for number in range(random.choice([1, 2, 3, 5, 12])):
        layers.append(_layer(random, f"l{number}", names))
        names.append(f"l{number}")
    if random.random() < 0.3:
        inner, rest = layers[: random.randrange(1, 4)], layers[3:]
        many = (
            [2**31, 10_001]
            if any(x["kind"] in SEARCHED for x in inner)
            else [50, 9_999, 10_000, 2**31]
        )
        rounds = random.choice([1, 2, 3, *many])
        layers = [*rest, {"name": "again", "repeat": rounds, "layers": inner}]
    shape = [random.choice(SIZES) for _ in range(3)]
    document = {"version": 1, "name": "net", "title": "t", "input": shape, "layers": layers}
    if random.random() < 0.2:
        document = changed(random, document)
    return flow(document).encode("utf-8", "surrogatepass")


def _layer(random: Random, name: str, names: list[str]) -> dict[str, Any]:
    kind = random.choice(list(KINDS))
    layer: dict[str, Any] = {"name": name, "kind": kind}
    for field, choices in KINDS[kind].items():
        if field in (
            "channels",
            "kernel",
            "features",
            "factor",
            "heads",
            "active",
            "states",
            "vocabulary",
            "stop",
            "operator",
        ) or (random.random() < 0.3):
            small = choices[:8] if random.random() < 0.8 else choices
            layer[field] = random.choice(small)
    if random.random() < 0.2:
        layer["learned"] = random.choice([True, False, "frozen", "biases", "yes"])
    if kind in ("conv", "conv-transpose") and random.random() < 0.1:
        layer["frames"] = random.choice(SIZES)
    if kind in ("reshape", "expand", "source", "uncounted"):
        layer["shape"] = [random.choice(SIZES) for _ in range(3)]
    wanted = {
        "add": 2,
        "multiply": 2,
        "concat": 2,
        "attention-scores": 2,
        "attention-context": 2,
        "dispatch": 2,
        "scan": 5,
        "combine": 2,
    }.get(kind, 1)
    if wanted > 1 or random.random() < 0.2:
        recent = names[-4:] if random.random() < 0.9 else names
        layer["inputs"] = [random.choice(recent) for _ in range(wanted)]
    if random.random() < 0.05:
        layer["shares"] = random.choice(names)
    return layer
