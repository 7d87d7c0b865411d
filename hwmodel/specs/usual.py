"""What is taken where nothing is named: read by commands before anything else is loaded."""

__all__ = ["ACCOUNTING", "CHIPS", "METHODS", "OF_MANY"]

ACCOUNTING = "chip"
OF_MANY = "full"  # accounting of studies of hundreds of runs: `chip` takes seconds for each
CHIPS = ("ascend", "v100")  # of a comparison: those of the source
METHODS = ("fp", "binaryconnect", "xnor-net", "binarynet", "bold", "bold-bn")
