"""
How many coordinates are needed?
================================

The maps are ordered: the first k of them, with a readout of their own, are the best k. So one fit
tells what any smaller number of coordinates would have given, and a model can be cut down
afterwards.
"""

# %%
# Sixteen coordinates of handwritten digits, 8 × 8 pixels, in closed form.

import numpy as np
from matplotlib import pyplot as plt
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression

from piefs import PIEFSClassifier, plot
from piefs.data import load

digits = load("digits")
model = PIEFSClassifier(n_components=16, random_state=0)
model.fit(digits.train.x, digits.train.y)
print(f"test accuracy {model.score(digits.test.x, digits.test.y):.4f}")

# %%
# Accuracy of a logistic regression on the first k coordinates, beside the first k principal
# components.

components = PCA(16, random_state=0).fit(digits.train.x)


def scores(transform):
    train, test = transform(digits.train.x), transform(digits.test.x)
    return [
        LogisticRegression(max_iter=2000)
        .fit(train[:, :k], digits.train.y)
        .score(test[:, :k], digits.test.y)
        for k in range(1, 17)
    ]


kept = np.arange(1, 17)
figure, ax = plt.subplots(figsize=(5.5, 3.4))
ax.plot(kept, scores(model.transform), "o-", label="PIEFS")
ax.plot(kept, scores(components.transform), "s-", color="0.6", label="PCA")
ax.set(xlabel="coordinates kept", ylabel="test accuracy", ylim=(0, 1.02))
ax.legend(frameon=False)

# %%
# The first four coordinates, two at a time.

axes = plot.panels(2, width=4.4, height=3.8)
phi = model.transform(digits.test.x)
for ax, (i, j) in zip(axes, [(0, 1), (2, 3)], strict=True):
    plot.coordinate_scatter(phi, digits.test.y, i=i, j=j, class_names=digits.class_names, ax=ax)
plt.show()
