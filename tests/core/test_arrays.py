"""Numbers that are drawn on the host are those that JAX would draw."""

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from piefs.core.arrays import numpy_for, signed_uniform, split_key
from piefs.core.maps import init_map, stack, unstack
from piefs.training.config import Optimizer
from piefs.training.step import begun

seeds = st.integers(0, 2**63 - 1)


def words(keys):
    return [np.asarray(jax.random.key_data(key)) for key in keys]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(seed=seeds, stream=st.integers(0, 100))
def test_numbers_are_those_of_jax_to_the_last_bit(seed, stream, dtype):
    with jax.enable_x64(dtype == np.float64):
        key = jax.random.fold_in(jax.random.key(seed), stream)
        found = signed_uniform(key, (3, 5), dtype, 0.3)
        expected = 0.3 * jax.random.uniform(key, (3, 5), dtype, -1.0, 1.0)
        assert found.dtype == expected.dtype == dtype
        assert_array_equal(found, expected)


@given(seed=seeds)
def test_keys_are_split_as_jax_splits_them(seed):
    key = jax.random.key(seed)
    assert_array_equal(words(split_key(key, 4)), words(jax.random.split(key, 4)))


def test_keys_of_another_kind_and_keys_without_a_value_are_left_to_jax():
    other = jax.random.key(0, impl="rbg")
    assert_array_equal(words(split_key(other, 2)), words(jax.random.split(other, 2)))
    traced = jax.jit(lambda key: signed_uniform(split_key(key, 2)[1], (2,), np.float32, 1.0))
    key = jax.random.key(3)
    assert_array_equal(traced(key), signed_uniform(split_key(key, 2)[1], (2,), np.float32, 1.0))


def test_a_new_shape_compiles_nothing_before_it_is_trained(caplog):
    key = jax.random.key(0)
    with jax.log_compiles():
        maps = stack([init_map(key, 17, (13, 11)) for key in split_key(key, 3)])
        begun(Optimizer("adam", 0.0), unstack(maps)[1])
    assert "Compiling" not in caplog.text


def test_what_is_being_traced_stays_with_jax():
    seen = []
    jax.jit(lambda a: seen.append(numpy_for(np.ones(2), a)) or a)(np.ones(2))
    assert seen == [jax.numpy]
    assert numpy_for(np.ones(2), jax.numpy.ones(2)) is np
