"""Reads CSV files that come back from editors and spreadsheets, or says what is wrong."""

from __future__ import annotations

import re
from pathlib import Path

from hwmodel.errors import DataError
from hwmodel.specs.inputs import note_input

__all__ = ["CONTROL", "csv_file_text"]

MAX_CHARACTERS = 2**31
# What a terminal obeys, or XML cannot hold.
CONTROL = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f" + "\ufffe\uffff]"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}


def csv_file_text(path: Path, most: int = MAX_CHARACTERS) -> str:
    """Read the text of a CSV file. Raises: DataError.

    The mark that spreadsheets write at the beginning is passed over. Control characters are
    refused: cells of a table come into figures, pages and terminals.
    """
    note_input(path)
    try:
        with path.open("rb") as stream:
            beginning = stream.read(2)
        with path.open(encoding="utf-8-sig", newline="") as stream:
            text = stream.read(most + 1)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        why = "it is UTF-16; UTF-8 is expected" if beginning in _UTF_16 else str(error)
        raise DataError(f"{path}: is not a CSV file: {why}") from None
    if len(text) > most:
        raise DataError(f"{path}: is longer than the {most:,} characters to be read")
    control = re.search(CONTROL, text)
    if control:
        line = text.count("\n", 0, control.start()) + 1
        raise DataError(f"{path}:{line}: has the control character {control[0]!r}")
    header = text.split("\n", 1)[0]
    for separator, called in _SEPARATORS.items():
        if header.count(separator) > header.count(","):
            raise DataError(f"{path}:1: is separated by {called}; commas are expected")
    return text
