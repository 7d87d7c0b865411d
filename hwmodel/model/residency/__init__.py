"""Which tensors stay on the chip between their uses."""
