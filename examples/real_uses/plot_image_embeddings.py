"""
Embeddings of images
====================

A network trained on ImageNet has turned each CIFAR-10 image into 512 numbers. Sixteen coordinates
keep what tells the ten classes apart: for search, plots, or a small model downstream.
"""

# %%
# 10,000 training rows and a short budget: a look, not a record (those are in the results).

import numpy as np
from matplotlib import pyplot as plt
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from piefs import PIEFSClassifier, plot
from piefs.data import load

images = load("cifar10-embedding")
x, y = images.train.x[:10_000], images.train.y[:10_000]
model = PIEFSClassifier(
    n_components=16, steps_per_component=600, early_stopping=False, random_state=0
)
model.fit(x, y)
linear = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=300)).fit(x, y)
print(f"PIEFS, 16 coordinates: {model.score(images.test.x, images.test.y):.3f}")
print(f"logistic regression, 512 columns: {linear.score(images.test.x, images.test.y):.3f}")

# %%
# Search by neighbours costs a thirtieth of the memory in 16 coordinates, and finds more of the
# same class.

test = slice(0, 2000)
for name, transform in {"512 columns": np.asarray, "16 coordinates": model.transform}.items():
    neighbours = KNeighborsClassifier(10).fit(transform(x), y)
    print(f"{name}: {neighbours.score(transform(images.test.x[test]), images.test.y[test]):.3f}")

# %%
# Animals on one side, vehicles on the other.

plot.coordinate_scatter(
    model.transform(images.test.x[test]), images.test.y[test], class_names=images.class_names
)
plt.show()
