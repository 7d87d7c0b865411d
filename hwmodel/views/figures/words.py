"""What a tensor of a table is, in words, for legends and axes."""

from __future__ import annotations

import re

__all__ = ["part_words"]

_TENSORS = {"I": "ifmap", "F": "filter", "O": "ofmap", "P": "parameters of an operator"}
_SIGNALS = {"F": "gradient of F", "P": "gradient of P"}


def part_words(name: str) -> str:
    """Write a tensor with what it is; anything else as it stands.

    >>> part_words("dI"), part_words("I2"), part_words("m(F)"), part_words("forward")
    ('dI: loss signal of I', 'I2: ifmap', 'm(F): moment of F', 'forward')
    """
    if match := re.fullmatch(r"([IFOP])(\d*)", name):
        return f"{name}: {_TENSORS[match[1]]}"
    if match := re.fullmatch(r"d([IFOP])(\d*)", name):
        return f"{name}: {_SIGNALS.get(match[1], f'loss signal of {name[1:]}')}"
    if match := re.fullmatch(r"[mv]\((\w+)\)|momentum\((\w+)\)", name):
        return f"{name}: moment of {match[1] or match[2]}"
    return name
