"""What a tensor of a table is, in words, for legends and axes."""

from __future__ import annotations

import re

from hwmodel.work.tensor import Pass

__all__ = ["part_words", "pass_words"]

_TENSORS = {"I": "ifmap", "F": "filter", "O": "ofmap", "P": "parameters of an operator"}
_PASS = re.compile(rf"({'|'.join(Pass)})(_(product|elementwise))?")
_SIGNALS = {"F": "gradient of F", "P": "gradient of P"}


def part_words(name: str) -> str:
    """Write a tensor with what it is, a pass in words; anything else as it stands.

    >>> part_words("dI"), part_words("I2"), part_words("m(F)"), part_words("backward_input")
    ('dI: loss signal of I', 'I2: ifmap', 'm(F): moment of F', 'backward input')
    """
    if match := re.fullmatch(r"([IFOP])(\d*)", name):
        return f"{name}: {_TENSORS[match[1]]}"
    if match := re.fullmatch(r"d([IFOP])(\d*)", name):
        return f"{name}: {_SIGNALS.get(match[1], f'loss signal of {name[1:]}')}"
    if match := re.fullmatch(r"[mv]\((\w+)\)|momentum\((\w+)\)", name):
        return f"{name}: moment of {match[1] or match[2]}"
    return pass_words(name)


def pass_words(name: str) -> str:
    """Write a pass, or its part of a kind, in words; any other name as it stands.

    >>> pass_words("backward_input"), pass_words("update"), pass_words("my_net")
    ('backward input', 'update', 'my_net')
    """
    return name.replace("_", " ") if _PASS.fullmatch(name) else name
