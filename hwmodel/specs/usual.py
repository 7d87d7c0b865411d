"""What is taken where nothing is named: read by commands before anything else is loaded."""

__all__ = ["ACCOUNTING"]

ACCOUNTING = "full"  # of bundled presets
