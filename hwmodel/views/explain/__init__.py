"""One layer's energy, entry by entry with its factors and their reasons: printed, not computed."""
