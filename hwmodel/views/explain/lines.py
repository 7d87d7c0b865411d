"""Lines of Markdown in which each computation can be done on a pocket calculator.

A computation is a code span `numbers = result`. It is done here, too, with the numbers as they are
printed, and one that does not come to what the report has is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from math import prod

from hwmodel.work.tensor import Factor

__all__ = ["TIMES", "computed", "count", "energy", "exact", "reasons", "table"]

TIMES = "\N{MULTIPLICATION SIGN}"


def count(number: float) -> str:
    """Write a count in full: whole, or the shortest decimals that mean the same.

    >>> count(1769472), count(36.0), count(38.4)
    ('1,769,472', '36', '38.4')
    """
    return f"{int(number):,}" if number == int(number) else repr(float(number))


def exact(constant: float) -> str:
    """Write a constant that others are multiplied by, to twelve digits.

    >>> exact(1 / 39.2)
    '0.0255102040816'
    """
    return _short(f"{constant:.12g}")


def energy(value: float) -> str:
    """Write an energy to six digits.

    >>> energy(30093.0612), energy(1234567890.0)
    ('30,093.1', '1.23457e9')
    """
    return _short(f"{value:,.6g}")


def _short(number: str) -> str:
    """Take the padding out of an exponent.

    >>> _short("1.2e+09"), _short("1.2e-05")
    ('1.2e9', '1.2e-5')
    """
    return number.replace("e+0", "e").replace("e+", "e").replace("e-0", "e-")


def computed(
    terms: Sequence[Sequence[Factor]], value: float, show: Callable[[float], str] = count
) -> str:
    """Write a sum of products, in names and in numbers: "N x C: `8 x 64 = 512`".

    Counts must come to `value` exactly, but those that are rounded to half a unit; other numbers
    to ten digits, since constants are printed to twelve. In a product what has a name and is 1 is
    left out.

    Raises: AssertionError where they do not: the explanation would not be true.
    """
    if len(terms) == 1:
        terms = [[f for f in terms[0] if f.value != 1 or not f.name] or terms[0][-1:]]
    numbers = [
        [count(f.value) if show is count or isinstance(f.value, int) else exact(f.value)
         for f in term]
        for term in terms
    ]  # fmt: skip
    found = sum(prod(Fraction(n.replace(",", "")) for n in term) for term in numbers)
    text, result = " + ".join(map(f" {TIMES} ".join, numbers)), show(value)
    slack = Fraction(0) if show is count else abs(Fraction(value)) / 10**10
    if show is count and any(factor.value % 1 for term in terms for factor in term):
        slack = abs(Fraction(value)) / 10**14  # the source's ratios are floating-point
        if isinstance(value, int):
            text, slack = f"round({text})", slack + Fraction(1, 2)
    if abs(found - Fraction(value)) > slack:
        raise AssertionError(f"{text} is {float(found)!r}, but the report has {value!r}")
    span = f"`{text} = {result}`" if text != result else f"`{result}`"
    if not any(factor.name for term in terms for factor in term):
        return span
    names = dict.fromkeys(f" {TIMES} ".join(map(_name, term)) for term in terms)
    return f"{' + '.join(names)}: {span}"


def _name(factor: Factor) -> str:
    return f"({factor.name})" if " - " in factor.name else factor.name


def reasons(factors: Iterable[Factor], told: set[str]) -> str:
    """Say where factors come from, in brackets; what was told before is not told again."""
    words = [f"{f.name}: {f.why}" if f.value != 1 else f.why for f in factors if f.why]
    new = [word for word in dict.fromkeys(words) if word not in told]
    told.update(new)
    return f" [{'; '.join(new)}]" if new else ""


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Write a header and rows as long as it."""
    for cells in (header, ("---",) * len(header), *rows):
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
