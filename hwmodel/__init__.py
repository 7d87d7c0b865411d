"""hwmodel: the energy of a network on a chip, under a method's arithmetic, layer by layer."""

__version__ = "0.1.0.dev0"
