"""Figures of tables that this tool has made, a module for each kind of drawing."""
