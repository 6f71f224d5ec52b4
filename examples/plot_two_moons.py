"""
Two Moons: what a coordinate looks like
=======================================

Each coordinate is a smooth function on the plane. On labelled data the first ones tell the
classes apart; a linear readout on top of them bends around the moons.
"""

# %%
# Four maps are enough for two classes. They are found in closed form: no steps, no settings.

from matplotlib import pyplot as plt

from piefs import PIEFSClassifier, plot
from piefs.data import load

moons = load("two-moons")
model = PIEFSClassifier(n_components=4, random_state=0)
model.fit(moons.train.x, moons.train.y)
print(f"test accuracy {model.score(moons.test.x, moons.test.y):.4f}")

# %%
# The maps φ₁ … φ₄ as heights over the plane, with some held-out points.

x, y = moons.validation.x, moons.validation.y
plot.plane_maps(model.transform, x, y, maps=range(4))

# %%
# The readout is linear in the coordinates. Pulled back to the plane its margin is curved; the
# line is where it is zero.

plot.plane_heatmap(model.decision_function, x, y, title="margin of the readout", contour=True)

# %%
# The coordinates are orthonormal: on the training rows exactly, on new rows up to sampling.

print(model.gram_errors(moons.train.x))
print(model.gram_errors(moons.test.x))
phi = model.transform(moons.test.x)
plot.gram_matrix(phi.T @ phi / len(phi))
plt.show()
