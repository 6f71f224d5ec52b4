"""
Pulsar candidates
=================

HTRU2: 17,898 candidates from a radio survey, eight numbers each, of which 9 % are pulsars. A
classifier is wanted, but also a picture of what makes a candidate look like a pulsar.
"""

# %%
# Eight coordinates; rare positives are judged by average precision rather than accuracy.

from matplotlib import pyplot as plt
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, f1_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from piefs import PIEFSClassifier, plot
from piefs.data import load
from piefs.report.relevance import column_relevance, gradient_outer_product

stars = load("htru2")
model = PIEFSClassifier(n_components=8, steps_per_component=1000, random_state=0)
model.fit(stars.train.x, stars.train.y)
linear = make_pipeline(StandardScaler(), LogisticRegression()).fit(stars.train.x, stars.train.y)
for name, one in {"PIEFS": model, "logistic regression": linear}.items():
    probability = one.predict_proba(stars.test.x)[:, 1]
    print(
        f"{name}: F1 {f1_score(stars.test.y, probability > 0.5):.3f}, "
        f"average precision {average_precision_score(stars.test.y, probability):.3f}"
    )

# %%
# The first coordinates of candidates that the model has not seen.

phi = model.transform(stars.test.x)
plot.coordinate_scatter(phi, stars.test.y, class_names=stars.class_names)

# %%
# Which of the eight numbers the coordinates really use: mean, deviation, excess kurtosis and
# skewness of the integrated profile, then the same four of the DM-SNR curve.

relevance = column_relevance(gradient_outer_product(model.model_, stars.train.x[:2000]))
plot.relevance_bars(relevance, list(stars.feature_names))
plt.show()
