"""The contract between graph and tiling: products, moves and operations over tensors."""
