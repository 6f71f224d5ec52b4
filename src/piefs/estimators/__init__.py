"""scikit-learn estimators. Flat keywords in, arrays out; `model_` is the pytree for use in JAX."""

from piefs.estimators.classifier import PIEFSClassifier
from piefs.estimators.persistence import load
from piefs.estimators.regressor import PIEFSRegressor
from piefs.estimators.transformer import PIEFSTransformer

__all__ = ["PIEFSClassifier", "PIEFSRegressor", "PIEFSTransformer", "load"]
