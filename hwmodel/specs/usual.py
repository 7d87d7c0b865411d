"""What is taken where nothing is named: read by commands before anything else is loaded."""

__all__ = ["ACCOUNTING", "CHIPS", "METHODS"]

ACCOUNTING = "full"
CHIPS = ("ascend", "v100")  # of a comparison: those of the source
METHODS = ("fp", "binaryconnect", "xnor-net", "binarynet", "bold", "bold-bn")
