"""
Without labels, and with a few
==============================

Without labels, coordinates that are learned from a graph of the rows follow the shape of the data,
as those of a spectral embedding do, and are defined for new rows too. With a few labels, the
unlabelled rows still say where the data lie.
"""

# %%
# A rolled-up sheet: the first coordinate runs along the roll.

from matplotlib import pyplot as plt
from sklearn.datasets import make_moons, make_swiss_roll

from piefs import PIEFSClassifier, PIEFSTransformer, plot

X, position = make_swiss_roll(3000, noise=0.1, random_state=0)
roll = PIEFSTransformer(n_components=2, supervised=False, solver="spectral", random_state=0).fit(X)
X_new, new_position = make_swiss_roll(1000, noise=0.1, random_state=1)
phi = roll.transform(X_new)

figure = plt.figure(figsize=(9, 3.8))
space = figure.add_subplot(1, 2, 1, projection="3d")
space.scatter(*X_new.T, c=new_position, s=6)
space.set_title("new rows")
plane = figure.add_subplot(1, 2, 2)
plane.scatter(phi[:, 0], phi[:, 1], c=new_position, s=6)
plane.set(xlabel="φ₁", ylabel="φ₂", title="their coordinates (colour: position along the roll)")

# %%
# Two moons, of which sixteen points are labelled. Left: these alone. Middle: coordinates that begin
# from a graph of all rows, labelled or not. Right: coordinates that follow this graph and have seen
# no label, with a linear readout that is solved on the sixteen.

X, y = make_moons(2000, noise=0.1, random_state=0)
few, rest, test = slice(0, 16), slice(16, 1000), slice(1000, None)
settings = {"n_components": 4, "steps_per_component": 600, "random_state": 0}
alone = PIEFSClassifier(**settings).fit(X[few], y[few])
warm = PIEFSClassifier(pretraining="graph-laplacian", **settings)
warm.fit(X[few], y[few], X_unlabeled=X[rest])
by_graph = PIEFSClassifier(solver="spectral", **settings)
by_graph.fit(X[few], y[few], X_unlabeled=X[rest])

axes = plot.panels(3, width=3.8, height=3.2)
models = {"16 labels": alone, "begun from a graph": warm, "by the graph alone": by_graph}
for ax, (title, model) in zip(axes, models.items(), strict=True):
    title = f"{title}: {100 * model.score(X[test], y[test]):.1f} %"
    plot.plane_heatmap(model.decision_function, X[:1000], None, ax=ax, title=title, contour=True)
    ax.scatter(*X[few].T, c=["C0" if label == 0 else "C1" for label in y[few]], edgecolors="k")
plt.show()
