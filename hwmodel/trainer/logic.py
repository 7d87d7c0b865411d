"""Three-valued logic and its meeting with numbers: T, F and 0, "no effect".

T, F and 0 are written as the numbers they stand for, +1, -1 and 0, so that the sign of a number
is a logic value and every rule below takes numbers wherever it takes logic values.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["FALSE", "NONE", "TRUE", "delta", "truth", "variation", "xnor", "xor"]

TRUE, FALSE, NONE = 1, -1, 0


def truth(x: ArrayLike) -> NDArray[np.float32]:
    """p(x): the sign of a number as a logic value, elementwise; 0 has no effect.

    Source: BOLD (arXiv:2405.16339), section 3.1, projector p.
    """
    return np.sign(np.asarray(x, np.float32))


def xnor(a: ArrayLike, x: ArrayLike) -> NDArray[np.float64]:
    """Agreement of a logic value with a logic value or a number: e(a) x.

    The magnitude is |a||x| and the sign follows logic, so over +1 and -1 xnor is multiplication,
    and an operand 0 makes the result 0.

    Source: BOLD, section 3.1, mixed-type connectives.
    >>> float(xnor(FALSE, 2.5)), float(xnor(NONE, 2.5))
    (-2.5, 0.0)
    """
    return np.asarray(a, np.float64) * np.asarray(x, np.float64) + 0.0  # no -0


def xor(a: ArrayLike, x: ArrayLike) -> NDArray[np.float64]:
    """Disagreement: -e(a) x; 0 where an operand is 0. Source: as `xnor`."""
    return -(np.asarray(a, np.float64) * np.asarray(x, np.float64)) + 0.0


def delta(before: int, after: int) -> int:
    """The change from one truth value to another: T where it rises, F where it falls, else 0.

    Source: BOLD, section 3.2, with F < T.
    """
    return (after > before) - (after < before)


def variation(f: Callable[[int], int], x: int) -> int:
    """f'(x) = xnor(delta(x -> not x), delta f(x -> not x)), the derivative of a Boolean function.

    T says that f follows its argument, F that it opposes it, 0 that it does not move.

    Source: BOLD, section 3.2, definition of the variation.
    >>> variation(lambda x: -x, TRUE)
    -1
    """
    return int(xnor(delta(x, -x), delta(f(x), f(-x))))
