"""Memories side by side and arrays of MACs: what crosses between them under a given mapping."""
