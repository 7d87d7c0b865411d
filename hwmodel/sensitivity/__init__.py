"""How far percentages and the ranking of methods hang on each constant and each choice."""

from hwmodel.sensitivity.montecarlo import Sampled, Spread
from hwmodel.sensitivity.study import Effect, Reversal, Sensitivity, sensitivity

__all__ = ["Effect", "Reversal", "Sampled", "Sensitivity", "Spread", "sensitivity"]
