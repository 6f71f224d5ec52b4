"""Every rotation there is, at the price of d(d − 1)/2 parameters and a d × d matrix a point."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from piefs.core.gradients import Parts


class Dense(eqx.Module):
    """U = exp(S) with a full skew-symmetric S: the yardstick in small dimensions."""

    @property
    def stride(self) -> int:
        """All components together."""
        return 1

    def n_parameters(self, d: int) -> int:
        """The entries of S above its diagonal."""
        return d * (d - 1) // 2

    def split(self, parameters: Array, d: int) -> Parts:
        """All entries together, row by row."""
        return (parameters,)

    def squash(self, outputs: Parts) -> Parts:
        """π tanh(·): an entry is a turn of at most π in its plane."""
        return tuple(jnp.pi * jnp.tanh(part) for part in outputs)

    def apply(self, parameters: Parts, v: Parts) -> Parts:
        """exp(S) v."""
        (entries,), (vectors,) = parameters, v
        d = vectors.shape[1]
        rows, columns = np.triu_indices(d, 1)
        upper = jnp.zeros((len(entries), d, d), entries.dtype).at[:, rows, columns].set(entries)
        matrices = jax.scipy.linalg.expm(upper - upper.transpose(0, 2, 1))
        matrices = jnp.broadcast_to(matrices, (len(vectors), d, d))
        return (jnp.einsum("nij,nj->ni", matrices, vectors),)
