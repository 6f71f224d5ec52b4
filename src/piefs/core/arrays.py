"""What is done once to each array, done by numpy: JAX would compile a program for every new shape.

A first fit would spend as long on programs that draw and stack its networks as on the one that
trains them. Numbers are those of `jax.random` to the last bit.
"""

from itertools import cycle, islice
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

THREEFRY = "threefry2x32"
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = np.uint32(0x1BD11BDA)


def numpy_for(*arrays: Any) -> Any:
    """The module numpy, or jax.numpy where one of the arrays is being traced."""
    return jnp if any(isinstance(array, Tracer) for array in arrays) else np


def split_key(key: Array, n: int) -> list[Array]:
    """n keys of the one given, as `jax.random.split` makes them."""
    if not _is_known(key):
        return list(jax.random.split(key, n))
    words = np.stack(_random_words(key, n), axis=-1)
    return [jax.random.wrap_key_data(one, impl=THREEFRY) for one in words]


def signed_uniform(key: Array, shape: tuple[int, ...], dtype: Any, bound: float) -> Array:
    """Numbers between ±bound, as `jax.random.uniform` draws them."""
    if not _is_known(key):
        return bound * jax.random.uniform(key, shape, dtype, -1.0, 1.0)
    dtype = jax.dtypes.canonicalize_dtype(dtype)
    high, low = _random_words(key, int(np.prod(shape)))
    if dtype == np.float64:
        words = (high.astype(np.uint64) << np.uint64(32)) | low
        ones = (words >> np.uint64(12)) | np.uint64(0x3FF0_0000_0000_0000)
    else:
        ones = ((high ^ low) >> np.uint32(9)) | np.uint32(0x3F80_0000)
    between_one_and_two = ones.view(np.float64 if dtype == np.float64 else np.float32)
    return jnp.asarray((bound * (2 * (between_one_and_two - 1) - 1)).reshape(shape), dtype)


def _is_known(key: Array) -> bool:
    """Whether a key has a value, and is one of JAX's usual kind."""
    if isinstance(key, Tracer) or not jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        return False
    return str(jax.random.key_impl(key)) == THREEFRY


def _random_words(key: Array, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Twice n random words: the counters 0 … n − 1, enciphered by Threefry-2x32 with the key.

    J. K. Salmon et al., Parallel random numbers: as easy as 1, 2, 3, SC 2011.
    """
    first, second = np.asarray(jax.random.key_data(key))
    counters = np.arange(n, dtype=np.uint64)
    a, b = (counters >> np.uint64(32)).astype(np.uint32), counters.astype(np.uint32)
    keys = (first, second, first ^ second ^ PARITY)
    with np.errstate(over="ignore"):  # words are added modulo 2³²
        a, b = a + keys[0], b + keys[1]
        for turn, rotations in enumerate(islice(cycle(ROTATIONS), 5), start=1):
            for bits in rotations:
                a = a + b
                b = a ^ ((b << np.uint32(bits)) | (b >> np.uint32(32 - bits)))
            a, b = a + keys[turn % 3], b + keys[(turn + 1) % 3] + np.uint32(turn)
    return a, b
