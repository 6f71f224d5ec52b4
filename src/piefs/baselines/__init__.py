"""What PIEFS is compared with: classical methods from scikit-learn, and NeuralEF.

>>> from piefs.baselines import BASELINES, make_baseline
>>> make_baseline("random-forest", seed=0).n_estimators
200
"""

from piefs.baselines.neuralef import NeuralEF
from piefs.baselines.registry import BASELINES, make_baseline

__all__ = ["BASELINES", "NeuralEF", "make_baseline"]
