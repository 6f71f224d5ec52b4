"""
Which inputs matter?
====================

Twenty columns, of which two decide the class. The average gradient of the maps shows which; the
metric ``agop`` feeds that back into the smoothness penalty, so that the maps stop listening to
the rest.
"""

# %%
# The class is the sector, of five, in which the first two columns lie. 300 rows are labelled.

import numpy as np
from matplotlib import pyplot as plt

from piefs import PIEFSClassifier, Static, plot
from piefs.report.relevance import column_relevance, gradient_outer_product, inverse_metric

rng = np.random.default_rng(0)
X = rng.standard_normal((3300, 20))
angle = np.arctan2(X[:, 1], X[:, 0])
y = np.digitize(angle, np.linspace(-np.pi, np.pi, 6)[1:-1])
train, test = slice(0, 300), slice(300, None)

settings = {
    "n_components": 4,
    "hidden": (64, 64),
    "weighting": Static(orth=1.0),
    "smoothness": 0.3,
    "steps_per_component": 1000,
    "early_stopping": False,
    "random_state": 0,
}
models = {
    "off": PIEFSClassifier(metric="off", **settings).fit(X[train], y[train]),
    "agop": PIEFSClassifier(metric="agop", **settings).fit(X[train], y[train]),
}
for name, model in models.items():
    print(f"metric {name}: test accuracy {model.score(X[test], y[test]):.3f}")

# %%
# How much the maps move with each column, for both.

axes = plot.panels(2, width=4.6, height=4.2)
names = [f"column {i}" for i in range(1, 21)]
for ax, (name, model) in zip(axes, models.items(), strict=True):
    relevance = column_relevance(gradient_outer_product(model.model_, X[train]))
    plot.relevance_bars(relevance, names, ax=ax)
    ax.set_title(f"average gradients, metric {name}")

# %%
# What the metric itself says: slopes are cheap along the columns that matter.

plot.relevance_bars(column_relevance(inverse_metric(models["agop"].model_, X[train])), names)
plt.show()
