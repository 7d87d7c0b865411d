"""A whole training run: how many iterations of which batch."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from hwmodel.specs.files import NamedSpec, Whole

__all__ = ["PJ_PER_KWH", "Training"]

PJ_PER_KWH = 3.6e18  # 1 kWh = 3.6e6 J


class Training(NamedSpec):
    """Epochs over a data set, in batches; the last one may be smaller and counts as whole."""

    KIND: ClassVar[str] = "training"
    FOLDER: ClassVar[str] = "trainings"

    epochs: Whole = Field(ge=1, le=10**6)
    images: Whole = Field(ge=1, le=10**12)
    batch: Whole = Field(ge=1, le=2**31)

    def iterations(self, batch: int) -> int:
        """Iterations of the whole run with batches of `batch` images."""
        return self.epochs * -(-self.images // batch)
