"""Run-length coding of what crosses a memory, as a chip's file states it."""

from __future__ import annotations

from pydantic import Field, model_validator

from hwmodel.specs.files import SpecModel, Text, Whole

__all__ = ["RunLength"]


class RunLength(SpecModel):
    """Pairs of a run of zeros and the word behind it, several of them packed.

    By hand, Eyeriss: three pairs of 5 and 16 bit and one bit more are 64.
    """

    word_bits: Whole = Field(ge=1, le=64, description="of a word that is coded")
    run_bits: Whole = Field(ge=1, le=16, description="of the number of zeros before a word")
    pairs: Whole = Field(default=1, ge=1, le=64, description="packed together")
    packed_bits: Whole = Field(ge=2, le=1024, description="of so many pairs")
    source: Text

    @model_validator(mode="after")
    def _fits(self) -> RunLength:
        least = self.pairs * (self.run_bits + self.word_bits)
        if self.packed_bits < least:
            raise ValueError(
                f"packed_bits is {self.packed_bits}, and pairs x (run_bits + word_bits) are {least}"
            )
        return self

    def bits(self, zeros: float) -> float:
        """Bits of a word in the mean, if each is zero with the same share by itself.

        A pair holds up to 2^run_bits - 1 zeros and one word more, which is a zero if the run is
        full. It stands for 1 + z + ... + z^m words in the mean, m = 2^run_bits - 1. Zeros that lie
        together code shorter, so this is the most that coded words take. Where codes would be
        longer than words, words stay as they are. Source: ours.

        Args:
            zeros: share of words that are 0, from 0 to 1.
        """
        longest = 2**self.run_bits
        words = float(longest) if zeros == 1 else (1 - zeros**longest) / (1 - zeros)
        return min(float(self.word_bits), self.packed_bits / self.pairs / words)
