"""Sweeps: many points of a design space, each the energy that `evaluate` gives, to 1e-12."""
