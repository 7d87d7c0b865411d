"""Questions as commands, their tables, and whether a table still is what its command makes."""
