"""
Numbers instead of classes
==========================

``PIEFSRegressor`` shapes its coordinates by a target that is a number; the readout is least
squares. Here: a surface that no line through the inputs can follow.
"""

# %%
# Noisy heights over a square.

import numpy as np
from matplotlib import pyplot as plt
from sklearn.linear_model import Ridge
from sklearn.model_selection import train_test_split

from piefs import PIEFSRegressor, plot

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (2000, 2))
y = np.sin(4 * X[:, 0]) * np.cos(3 * X[:, 1]) + 0.1 * rng.standard_normal(2000)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

model = PIEFSRegressor(n_components=6, random_state=0).fit(X_train, y_train)
line = Ridge().fit(X_train, y_train)
print(f"R²: {model.score(X_test, y_test):.3f}, ridge {line.score(X_test, y_test):.3f}")

# %%
# What is predicted, with the test points in their true colours: where it is right, a point sinks
# in.

plot.plane_heatmap(model.predict, X_test, y_test, title="prediction (dots: truth)")

# %%
# The coordinates behind it.

plot.plane_maps(model.transform, X_test, maps=range(3))

# %%
# By smoothness instead of importance: the Ritz view. Its eigenvalues are the energies, the
# smoothest coordinate comes first.

view = model.ritz()
plot.energies(view.eigenvalues)
smoothest = model.transform(X_test) @ view.rotation.T
print(smoothest.shape)
plt.show()
