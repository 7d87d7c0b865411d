"""Families of networks: each module has one function `network(...)` that wires its layers.

A family is found by the name of its module; `_wiring` is what families share and is none.
"""
