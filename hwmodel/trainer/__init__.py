"""A small NumPy trainer in Boolean logic that measures what energy models otherwise assume."""
