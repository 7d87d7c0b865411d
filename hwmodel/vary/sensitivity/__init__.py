"""How far percentages and the ranking of methods hang on each constant and each choice."""

from hwmodel.vary.sensitivity.montecarlo import Sampled, Spread
from hwmodel.vary.sensitivity.study import Effect, Reversal, Sensitivity, sensitivity

__all__ = ["Effect", "Reversal", "Sampled", "Sensitivity", "Spread", "sensitivity"]
