"""What a shell offers at the Tab key where a name is wanted: those that are bundled."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["bundled_names"]


def bundled_names(word: str) -> Callable[[str], list[str]]:
    """For the `autocompletion` of an option or argument that takes names of one kind of file.

    Of names separated by commas the last is completed. Where no name fits, the shell goes on to
    names of files.
    """

    def offered(incomplete: str) -> list[str]:
        from hwmodel.views.catalogue import names

        before, comma, begun = incomplete.rpartition(",")
        return [before + comma + name for name in names(word) if name.startswith(begun)]

    return offered
