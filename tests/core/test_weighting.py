import copy
import dataclasses
import math

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from piefs.core.weighting import DAMPENINGS, Dampened, LossWeights, Static

pytestmark = pytest.mark.usefixtures("float64")

LOSSES = st.floats(0, 5)


def weights(weighting, g, class_loss):
    return LossWeights(*map(float, weighting(jnp.asarray(g), jnp.asarray(class_loss))))


@pytest.mark.parametrize(("g", "class_loss"), [(0.0, 0.0), (0.05, 0.1), (0.02, 0.6), (0.3, 0.2)])
def test_default_weights_are_those_of_the_paper(g, class_loss):
    w = weights(Dampened(), g, class_loss)
    assert w.orth == 1
    assert w.class_ == pytest.approx(math.exp(-g / 0.1))
    assert w.mde == pytest.approx(math.exp(-max(g / 0.1, class_loss / 0.5)))


@pytest.mark.parametrize(("g", "class_loss"), [(0.05, 0.1), (0.02, 0.6), (0.3, 2.0)])
@pytest.mark.parametrize(
    ("name", "delta"),
    [
        ("exponential", lambda r: math.exp(-r)),
        ("rational", lambda r: 1 / (1 + r)),
        ("polynomial", lambda r: (1 - r) ** 2 if r < 1 else 0.0),
    ],
)
def test_dampened_weights_share_one_shape(name, delta, g, class_loss):
    w = weights(Dampened(name, t_orth=0.2, t_class=0.9), g, class_loss)
    assert w.orth == 1
    assert w.class_ == pytest.approx(delta(g / 0.2))
    assert w.mde == pytest.approx(delta(max(g / 0.2, class_loss / 0.9)))


def test_rational_dampening_at_unit_temperature_is_the_papers_alternative():
    assert weights(Dampened("rational", t_orth=1.0), 0.25, 0.0).class_ == pytest.approx(1 / 1.25)


def test_large_gram_error_suppresses_classes_and_smoothness():
    calm, upset = weights(Dampened(), 0.0, 0.0), weights(Dampened(), 5.0, 0.0)
    assert calm == (1, 1, 1)
    assert upset.orth == 1
    assert upset.class_ < 1e-20
    assert upset.mde < 1e-20


def test_large_class_loss_suppresses_smoothness_only():
    w = weights(Dampened(), 0.0, 25.0)
    assert w.orth == 1
    assert w.class_ == 1
    assert w.mde < 1e-20


@pytest.mark.parametrize("name", DAMPENINGS)
@given(g=LOSSES, class_loss=LOSSES)
def test_priorities_never_reverse(name, g, class_loss):
    w = weights(Dampened(name), g, class_loss)
    assert 1 == w.orth >= w.class_ >= w.mde >= 0


@pytest.mark.parametrize("name", DAMPENINGS)
@given(g=LOSSES, step=LOSSES, class_loss=LOSSES)
def test_weights_fall_as_the_gram_error_rises(name, g, step, class_loss):
    before, after = (weights(Dampened(name), value, class_loss) for value in (g, g + step))
    assert after.class_ <= before.class_
    assert after.mde <= before.mde


@pytest.mark.parametrize("name", DAMPENINGS)
def test_weights_fall_strictly_while_the_gram_error_is_moderate(name):
    series = [weights(Dampened(name), g, 0.0) for g in (0.0, 0.03, 0.06, 0.09)]
    assert np.all(np.diff([w.class_ for w in series]) < 0)
    assert np.all(np.diff([w.mde for w in series]) < 0)


@pytest.mark.parametrize("name", DAMPENINGS)
@given(g=LOSSES, class_loss=LOSSES)
def test_normalised_weights_sum_to_one_and_keep_their_ratios(name, g, class_loss):
    raw = weights(Dampened(name), g, class_loss)
    normalised = weights(Dampened(name, normalize=True), g, class_loss)
    assert sum(normalised) == pytest.approx(1)
    assert normalised.class_ == pytest.approx(raw.class_ * normalised.orth)
    assert normalised.mde == pytest.approx(raw.mde * normalised.orth)


def test_static_weights_ignore_the_losses():
    assert Static(1.0, 0.0, 2.0)(jnp.asarray(9.0), jnp.asarray(7.0)) == (1, 0, 2)


@pytest.mark.parametrize("weighting", [Dampened(), Static()])
def test_weightings_are_values_that_can_be_compared_and_not_changed(weighting):
    assert hash(weighting) == hash(copy.deepcopy(weighting))
    with pytest.raises(dataclasses.FrozenInstanceError):
        weighting.t_orth = 2.0
