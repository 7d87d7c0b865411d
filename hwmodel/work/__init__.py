"""The contract between graph and tiling: what is multiplied, moved and operated on."""
