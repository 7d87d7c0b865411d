"""One layer's energy, formula by formula with its numbers, down to the report's rows."""
