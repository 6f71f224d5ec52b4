"""The time of a whole fit against what a user might take instead, on the same rows and cores."""

import json

from lab.benchmarks.machine import fresh_python

MODELS = {
    "piefs fast": "PIEFSClassifier(preset='fast', random_state=0)",
    "piefs default": "PIEFSClassifier(random_state=0)",
    "random forest": "RandomForestClassifier(200, n_jobs=-1, random_state=0)",
    "gradient boosting": "HistGradientBoostingClassifier(random_state=0)",
    "sklearn MLP": "MLPClassifier((256, 256, 256), early_stopping=True, random_state=0)",
    "supervised UMAP + LR": "Embedded(UMAP(n_components=16, n_jobs=1, random_state=0))",
}
PROGRAM = """
import json, resource, time, warnings
warnings.simplefilter("ignore")
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler
from piefs import PIEFSClassifier
from piefs.data import load

class Embedded:
    def __init__(self, embedding):
        self.embedding, self.probe = embedding, LogisticRegression(max_iter=1000)
    def fit(self, X, y):
        self.probe.fit(self.embedding.fit_transform(X, y), y)
        return self
    def predict(self, X):
        return self.probe.predict(self.embedding.transform(X))

if "UMAP" in {model!r}:
    from umap import UMAP
data = load({dataset!r})
scaler = StandardScaler().fit(data.train.x)
parts = data.train, data.validation
X, X_held_out = (scaler.transform(part.x).astype(np.float32) for part in parts)
model = {model}
start = time.perf_counter()
model.fit(X, data.train.y)
seconds = time.perf_counter() - start
accuracy = np.mean(model.predict(X_held_out) == data.validation.y)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
accuracy = round(100 * float(accuracy), 2)
found = dict(seconds=round(seconds, 2), validation_accuracy=accuracy, peak_mb=round(peak))
print(json.dumps(found))
"""
DATASETS = ("two-moons", "digits", "htru2")


def one_fit(dataset: str, model: str) -> dict[str, float]:
    """In a process of its own: compilation counts, and so does the peak memory."""
    code = PROGRAM.format(dataset=dataset, model=model)
    return json.loads(fresh_python(code).splitlines()[-1])


def run() -> dict[str, object]:
    """One seed each; accuracies are on validation rows and say that the fit was a real one."""
    rows = []
    for dataset in DATASETS:
        for name, model in MODELS.items():
            rows.append({"dataset": dataset, "model": name, **one_fit(dataset, model)})
            print(f"  {rows[-1]}", flush=True)
    return {"rows": rows}
