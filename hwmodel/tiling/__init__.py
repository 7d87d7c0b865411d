"""From a problem and a chip to tiles, accesses and the energy of moving data."""
