"""
Beside PCA, LDA and NCA
=======================

The same digits in two dimensions by four methods, each fitted on the training rows and applied to
rows it has not seen. The number is the accuracy of a nearest-neighbour classifier in the plane.
"""

# %%
# Linear methods project; PIEFS bends. Two coordinates cannot hold a direction for each of ten
# classes, so networks are trained, which fold the classes into the plane.

from matplotlib import pyplot as plt
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis

from piefs import PIEFSTransformer, plot
from piefs.data import load

digits = load("digits")
train, test = digits.train, digits.test
methods = {
    "PCA": PCA(2, random_state=0),
    "LDA": LinearDiscriminantAnalysis(n_components=2),
    "NCA": NeighborhoodComponentsAnalysis(2, init="pca", max_iter=30, random_state=0),
    "PIEFS": PIEFSTransformer(2, solver="nested", steps_per_component=1000, random_state=0),
}

# %%
# Fit, transform new rows, draw.

axes = plot.panels(4, width=3.6, height=3.4)
for ax, (name, method) in zip(axes, methods.items(), strict=True):
    z_train = method.fit(train.x, train.y).transform(train.x)
    z_test = method.transform(test.x)
    accuracy = KNeighborsClassifier(15).fit(z_train, train.y).score(z_test, test.y)
    plot.coordinate_scatter(
        z_test, test.y, class_names=digits.class_names, ax=ax, with_key=name == "PIEFS"
    )
    ax.set(title=f"{name}: {100 * accuracy:.1f} %", xlabel="", ylabel="")
plt.show()
