"""What `generate` is asked, the values that its words stand for, and its table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hwmodel.errors import HwmodelError
from hwmodel.graph.network import Network
from hwmodel.importers.load import load_network
from hwmodel.model.generate import COLUMNS, LONGEST, Generation, generate
from hwmodel.model.widths import method_specs
from hwmodel.rerun.asked import GenerateAsked, command_line
from hwmodel.rerun.tables import Table
from hwmodel.specs.accounting import Accounting
from hwmodel.specs.arguments import whole
from hwmodel.specs.files import load
from hwmodel.specs.hardware import Hardware
from hwmodel.specs.method import Method
from hwmodel.specs.provenance import Provenance, input_of

__all__ = ["Generations", "generations"]


@dataclass(frozen=True)
class Generations:
    """A generation, with several numbers of sequences side by side."""

    asked: GenerateAsked
    network: Network
    hardware: Hardware
    method: Method
    accounting: Accounting
    batches: tuple[int, ...]

    def found(self) -> list[Generation]:
        """The answer, batch by batch."""
        return [
            generate(
                self.network, self.hardware, self.method, prefill=self.asked.prefill,
                decode=self.asked.decode, batch=batch, cache_bits=self.asked.cache_bits or None,
                accounting=self.accounting,
            )
            for batch in self.batches
        ]  # fmt: skip

    @staticmethod
    def table(found: Sequence[Generation]) -> Table:
        """A row for each batch, phase and part."""
        return Table(COLUMNS, [row for one in found for row in one.records])

    def provenance(self) -> Provenance:
        """What outputs say of where they come from."""
        specs = (self.network, self.hardware, *method_specs(self.method), self.accounting)
        return Provenance(command_line(self.asked), tuple(dict.fromkeys(map(input_of, specs))))


def generations(asked: GenerateAsked) -> Generations:
    """The values behind what `generate` is asked. Raises: HwmodelError."""
    batches = tuple(map(_sequences, asked.batch))
    whole("--prefill", asked.prefill, 1, LONGEST)
    whole("--decode", asked.decode, 0, LONGEST)
    shapes = {}
    if asked.input_shape:
        from hwmodel.importers.onnx import input_shapes

        shapes = input_shapes(asked.input_shape)
    return Generations(
        asked, load_network(asked.network, shapes), load(Hardware, asked.hardware),
        load(Method, asked.method), load(Accounting, asked.accounting), batches,
    )  # fmt: skip


def _sequences(word: str) -> int:
    if not (word.isascii() and word.isdigit() and int(word) > 0):
        raise HwmodelError(f"--batch {word!r}: a whole number above 0, or several with commas")
    return int(word)
