"""Checked values from files: chips, methods, accountings, traces; and what a value is made of."""
