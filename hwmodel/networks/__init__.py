"""Families of networks: each module has one function `network(...)` that wires its layers."""
