"""Truth values as bits, 64 to a word, and the sums of agreements counted on them.

T is 1 and stands for +1, F is 0 and stands for -1. Bits beyond the end of a row are F in both
operands of a count; they never disagree, so they never count.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bits", "Logic", "Signs", "Sums", "pack", "pack_bytes", "signs", "unpack"]
__all__ += ["words", "xnor_sums", "xor_sums"]

Logic = NDArray[np.bool_]  # truth values, one a byte
Bits = NDArray[np.uint64]  # [rows, words]: the same values, 64 a word, lowest bit first
Signs = NDArray[np.float32]  # the same values as +1 and -1
Sums = NDArray[np.int32]  # agreements minus disagreements

BLOCK_BYTES = 2**18  # of 64-bit intermediate results at a time: they stay in a core's cache


def signs(x: Logic) -> Signs:
    """Return truth values as +1 and -1, same shape."""
    out = x.astype(np.float32)
    out *= 2
    out -= 1
    return out


def pack_bytes(x: Logic) -> NDArray[np.uint8]:
    """The last axis, n values, as ceil(n / 8) bytes, lowest bit first."""
    return np.packbits(x, axis=-1, bitorder="little")


def words(rows: NDArray[np.uint8]) -> Bits:
    """Rows of bytes [rows, n] as words of 64 bits [rows, ceil(n / 8)], zeros at the end."""
    spare = -rows.shape[-1] % 8
    if spare:
        rows = np.pad(rows, ((0, 0), (0, spare)))
    return np.ascontiguousarray(rows).view("<u8")


def pack(x: Logic) -> Bits:
    """Rows of truth values [rows, m] as words of 64 bits [rows, ceil(m / 64)]."""
    return words(pack_bytes(x))


def unpack(bits: Bits, taps: int, inputs: int) -> Logic:
    """Truth values [rows, taps * inputs] of words in which every tap begins at a whole byte.

    A row packed by `pack` is the case of one tap.
    """
    size = -(-inputs // 8)
    rows = bits.view(np.uint8)[:, : taps * size].reshape(len(bits), taps, size)
    values = np.unpackbits(rows, axis=-1, count=inputs, bitorder="little")
    return values.reshape(len(bits), taps * inputs).view(np.bool_)


def xnor_sums(x: Bits, w: Bits, m: int) -> Sums:
    """Count agreements minus disagreements over m inputs, of every row of x with every row of w.

        s[k, j] = m - 2 * (number of i with x[k, i] != w[j, i])

    the product of the +1 and -1 matrices, to the integer. Words are visited one after another;
    the disagreements of a block of rows are counted in planes of the narrowest integer that
    holds m.

    Args:
        x: [rows, words].
        w: [outs, words].
        m: inputs that count; all further bits of both operands are 0.

    Source: BOLD, section 3.3, pre-activation with L = xnor, in units of +1 and -1.
    Holds for: every shape, m < 2**31; tests compare with a product written out in +1 and -1.
    """
    outs = len(w)
    columns = np.ascontiguousarray(w.T)
    plane = np.uint16 if m < 2**16 else np.uint32
    height = max(1, min(len(x), BLOCK_BYTES // (8 * max(outs, 1))))
    differ = np.empty((height, outs), np.uint64)
    ones = np.empty((height, outs), np.uint8)
    sums = np.empty((len(x), outs), np.int32)
    for start in range(0, len(x), height):
        block = x[start : start + height]
        n = len(block)
        count = np.zeros((n, outs), plane)
        for word, column in enumerate(columns):
            np.bitwise_xor(block[:, word, None], column, out=differ[:n])
            np.bitwise_count(differ[:n], out=ones[:n])
            count += ones[:n]
        np.multiply(count, -2, out=sums[start : start + n], dtype=np.int32, casting="unsafe")
    sums += m
    return sums


def xor_sums(x: Bits, w: Bits, m: int) -> Sums:
    """Disagreements minus agreements, `xnor_sums` negated. Source: as there, with L = xor."""
    return -xnor_sums(x, w, m)
