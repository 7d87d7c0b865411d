"""What was made last, for arguments that have no hash: asked again, they are the same objects."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

__all__ = ["lately"]

Args = ParamSpec("Args")
Made = TypeVar("Made")


def lately(most: int) -> Callable[[Callable[Args, Made]], Callable[Args, Made]]:
    """Keep what a function made of its last `most` arguments, compared by `==`.

    Specs hold mappings, so they have no hash; that they are equal is seen at once where they are
    the same objects, and that they differ at the first field that does.
    """

    def keeping(function: Callable[Args, Made]) -> Callable[Args, Made]:
        kept: deque[tuple[Any, Made]] = deque(maxlen=most)

        @wraps(function)
        def asked(*args: Args.args, **kwargs: Args.kwargs) -> Made:
            key = args, kwargs
            for known, found in tuple(kept):
                if known == key:
                    return found
            made = function(*args, **kwargs)
            kept.append((key, made))
            return made

        return asked

    return keeping
