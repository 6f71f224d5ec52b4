"""What PIEFS is compared with: classical methods from scikit-learn, and NeuralEF.

>>> from reproduction.baselines import BASELINES, make_baseline
>>> make_baseline("random-forest", seed=0).n_estimators
200
"""

from reproduction.baselines.neuralef import NeuralEF
from reproduction.baselines.registry import BASELINES, make_baseline

__all__ = ["BASELINES", "NeuralEF", "make_baseline"]
