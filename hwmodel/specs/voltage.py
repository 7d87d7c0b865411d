"""The supply of a chip: that of its prices, and that at which it runs.

A circuit that charges a capacitance C to the voltage V takes C V^2, so an operation goes with the
square of the supply. Source: Greaves, System on Chip D/M, University of Cambridge, ACS P35, 2018.
"""

from __future__ import annotations

from pydantic import Field, model_validator

from hwmodel.specs.files import SpecModel, Text
from hwmodel.specs.mistakes import Contradiction
from hwmodel.specs.spread import Timed
from hwmodel.specs.stated import Supply

__all__ = ["Supplied", "Voltage"]

LEAST, MOST = 0.05, 50.0  # of a supply of logic [V]
FAR = 2.0  # supplies further apart are doubtful; source: Zhai et al., DAC 2004


class Voltage(SpecModel):
    """Two supplies: prices are stated at the one, and the chip runs at the other."""

    priced: Supply = Field(description="for which the prices of this file are stated")
    run: Supply = Field(description="at which the chip runs")
    source: Text

    @model_validator(mode="after")
    def _of_logic(self) -> Voltage:
        for name in ("priced", "run"):
            volts = getattr(self, name).volts
            if not LEAST <= volts <= MOST:
                rule = f"{volts:g} V is no supply of logic, which has {LEAST:g} to {MOST:g} V"
                raise Contradiction(rule, name)
        return self

    @property
    def factor(self) -> float:
        """By which energies of operations and of memories on the chip differ from their prices.

        By hand: at 0.6 V with prices of 1.2 V a quarter.
        """
        return (self.run.volts / self.priced.volts) ** 2

    @property
    def ratio(self) -> str:
        """Both supplies, for print."""
        return f"{self.run.volts:g} V / {self.priced.volts:g} V"


class Supplied(Timed):
    """A chip whose prices may be those of another supply than its own."""

    voltage: Voltage | None = Field(
        default=None,
        description="operations, hops, cycles of arrays and memories on the chip cost "
        "(run / priced)^2 of their prices; static power does not move, nor outermost memories "
        "but those on_chip",
    )

    def check_voltage(self) -> None:
        """See that there is an energy which a voltage moves: one in joules."""
        if self.voltage and self.energy_unit != "pJ":
            rule = f"moves energies in joules, but energy_unit is {self.energy_unit}"
            raise Contradiction(rule, "voltage")

    def doubts_of_voltage(self) -> list[str]:
        """List supplies so far apart that the square law is doubtful."""
        if self.voltage is None:
            return []
        ratio = self.voltage.run.volts / self.voltage.priced.volts
        if 1 / FAR <= ratio <= FAR:
            return []
        return [f"voltage: {self.voltage.ratio} is more than a factor of {FAR:g}; is it right?"]

    @property
    def scale(self) -> float:
        """Factor of the voltage on operations, hops, cycles and memories on the chip; 1 without."""
        return self.voltage.factor if self.voltage else 1.0
