"""The methods that PIEFS is compared with, by name: scikit-learn's, and NeuralEF.

A factory takes a seed, the number of features K for the methods that make features (others ignore
it) and the kind of the inputs. A "table" is standardised wherever scales matter; an "image" has its
pixels in [0, 1] and stays as it is, but for the linear methods of the paper (Sec. 3.1), which
standardise it too.

>>> make_baseline("random-forest", seed=0).n_estimators
200
"""

from collections.abc import Callable
from typing import Any

from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_selection import VarianceThreshold
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from piefs.errors import InputError
from reproduction.baselines.features import (
    Bottleneck,
    ClippedPCA,
    MatchedMLP,
    MedianNystroem,
    SubsampledNCA,
    SupervisedUMAP,
)
from reproduction.baselines.neuralef import NeuralEF

MAX_SVM_ROWS = 20_000

# Any, since scikit-learn's types do not know that a pipeline predicts.
Factory = Callable[[int, int, str], Any]


class RowLimitedSVC(SVC):
    """A support vector machine that refuses tables on which it would take hours."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "RowLimitedSVC":
        """Train on at most 20,000 rows."""
        n = len(y)
        if n > MAX_SVM_ROWS:
            raise InputError(
                f"the baseline 'svm' takes at most {MAX_SVM_ROWS:,} rows, not {n:,}: "
                "its cost grows with their square; give it a subsample, or use 'nystroem-lr'"
            )
        return super().fit(X, y, sample_weight)


def random_forest(seed: int, n_components: int, kind: str) -> RandomForestClassifier:
    """200 trees on the inputs as they are."""
    return RandomForestClassifier(200, random_state=seed, n_jobs=1)


def logistic_regression(seed: int, n_components: int, kind: str) -> Pipeline:
    """Multinomial logistic regression on standardised inputs."""
    return Pipeline([("scale", StandardScaler()), ("classifier", _linear())])


def pca_lr(seed: int, n_components: int, kind: str) -> Pipeline:
    """Logistic regression on the principal components of standardised inputs."""
    return _probed(StandardScaler(), ClippedPCA(n_components, random_state=seed))


def neuralef(seed: int, n_components: int, kind: str) -> Pipeline:
    """NeuralEF, Gaussian kernel for tables and NN-GP kernel for images, and a linear probe."""
    kernel = "nngp" if kind == "image" else "rbf"
    features = NeuralEF(n_components, kernel=kernel, random_state=seed)
    return _probed(_scaling(kind), features, LogisticRegression())


def gradient_boosting(seed: int, n_components: int, kind: str) -> HistGradientBoostingClassifier:
    """Histogram gradient boosting on the inputs as they are."""
    return HistGradientBoostingClassifier(random_state=seed)


def mlp(seed: int, n_components: int, kind: str) -> Pipeline:
    """A multilayer perceptron with as many parameters as K maps φ_k."""
    classifier = MatchedMLP(n_components, random_state=seed)
    return Pipeline([("scale", _scaling(kind)), ("classifier", classifier)])


def bottleneck_mlp(seed: int, n_components: int, kind: str) -> Pipeline:
    """Logistic regression on the K-unit last hidden layer of a perceptron."""
    return _probed(_scaling(kind), Bottleneck(n_components, random_state=seed))


def lda(seed: int, n_components: int, kind: str) -> Pipeline:
    """Linear discriminant analysis on the columns that are not constant."""
    steps = [("scale", VarianceThreshold()), ("classifier", LinearDiscriminantAnalysis())]
    return Pipeline(steps)


def nca(seed: int, n_components: int, kind: str) -> Pipeline:
    """Logistic regression on neighbourhood components, these fitted to at most 5,000 rows."""
    return _probed(_scaling(kind), SubsampledNCA(n_components, random_state=seed))


def nystroem_lr(seed: int, n_components: int, kind: str) -> Pipeline:
    """Logistic regression on K Nyström features of a Gaussian kernel, standardised inputs."""
    return _probed(StandardScaler(), MedianNystroem(n_components, random_state=seed))


def svm(seed: int, n_components: int, kind: str) -> Pipeline:
    """A support vector machine with Gaussian kernel (no probabilities); at most 20,000 rows."""
    return Pipeline([("scale", _scaling(kind)), ("classifier", RowLimitedSVC())])


def umap(seed: int, n_components: int, kind: str) -> Pipeline:
    """Logistic regression on a UMAP embedding that has seen the labels."""
    return _probed(_scaling(kind), SupervisedUMAP(n_components, random_state=seed))


def _linear() -> LogisticRegression:
    return LogisticRegression(max_iter=5000)


def _scaling(kind: str) -> Any:
    return "passthrough" if kind == "image" else StandardScaler()


def _probed(scaling: Any, features: Any, probe: LogisticRegression | None = None) -> Pipeline:
    return Pipeline(
        [("scale", scaling), ("features", features), ("classifier", probe or _linear())]
    )


BASELINES: dict[str, Factory] = {
    "random-forest": random_forest,
    "logistic-regression": logistic_regression,
    "pca-lr": pca_lr,
    "neuralef": neuralef,
    "gradient-boosting": gradient_boosting,
    "mlp": mlp,
    "bottleneck-mlp": bottleneck_mlp,
    "lda": lda,
    "nca": nca,
    "nystroem-lr": nystroem_lr,
    "svm": svm,
    "umap": umap,
}


def make_baseline(name: str, *, seed: int, n_components: int = 16, image: bool = False) -> Any:
    """An unfitted baseline by name.

    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> make_baseline("pca-lr", seed=0, n_components=2).fit(X, y).score(X, y) > 0.9
    True
    """
    if name not in BASELINES:
        raise InputError(f"no baseline is called {name!r}; there are {', '.join(BASELINES)}")
    if n_components < 1:
        raise InputError(f"n_components={n_components} must be at least 1")
    return BASELINES[name](seed, n_components, "image" if image else "table")
