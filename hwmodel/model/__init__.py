"""The line: widths, work, entries, ledger, prices; evaluation and comparison."""
