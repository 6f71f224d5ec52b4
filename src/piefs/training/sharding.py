"""One batch over many devices, of this process or of several (`jax.distributed`).

Every device takes a share of a batch's rows; parameters are the same everywhere. The losses of a
batch are functions of sums over its rows: a step adds these sums up over all devices, and then the
gradients, which are two messages. All processes run the same program on the same table; each reads
the rows of its own devices only, and passes over the whole table are shared out among them. JAX is
imported once there are devices to share.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from piefs.errors import InputError, LostProcessError

if TYPE_CHECKING:
    from jax import Array
    from jax.sharding import Mesh

T = TypeVar("T")
ROWS = "rows"  # the name of the axis that devices stand along
SIGNS_OF_LOSS = ("Gloo", "NCCL", "oordination service", "heartbeat", "DEADLINE_EXCEEDED")


@dataclass(frozen=True)
class Devices:
    """The devices that share each batch; without a mesh, it is the one that JAX takes by itself."""

    mesh: Mesh | None = None

    @property
    def process(self) -> int:
        """Which of the processes this is."""
        if self.n_processes == 1:
            return 0
        import jax

        return jax.process_index()

    @property
    def n_processes(self) -> int:
        """How many processes take part."""
        if self.mesh is None:
            return 1
        return len({device.process_index for device in self.mesh.devices.flat})

    def places(self, batch_size: int) -> np.ndarray:
        """Which rows of a batch this process's devices take, in order; −1 stands for padding.

        A batch has two halves (see `split_gram_error`); each device takes its share of either, and
        all take equally many rows, some of which then are padding, of weight zero.
        """
        rows = np.arange(batch_size)
        if self.mesh is None:
            return rows
        n = self.mesh.size
        halves = (rows[: batch_size // 2], rows[batch_size // 2 :])
        padded = (np.pad(half, (0, -len(half) % n), constant_values=-1) for half in halves)
        shares = np.concatenate([half.reshape(n, -1) for half in padded], axis=1)
        own = set(self.mesh.local_devices)
        return shares[[device in own for device in self.mesh.devices.flat]].ravel()

    def put(self, chunk: np.ndarray) -> Array:
        """A chunk's share of this process, shape (steps, rows, …), on its devices."""
        if self.mesh is None:
            import jax

            return jax.device_put(chunk)
        return self._put(chunk, None, None, ROWS)

    def everywhere(self, tree: Any) -> Any:
        """The same arrays on every device."""
        if self.mesh is None:
            return tree
        import jax

        return jax.tree.map(lambda a: self._put(np.asarray(a), np.shape(a)), tree)

    def _put(self, local: np.ndarray, shape: tuple[int, ...] | None, *axes: str | None) -> Array:
        import jax
        from jax.sharding import NamedSharding, PartitionSpec

        mesh: Any = self.mesh
        sharding = NamedSharding(mesh, PartitionSpec(*axes))
        return jax.make_array_from_process_local_data(sharding, local, shape)

    def here(self, tree: Any) -> Any:
        """One copy of arrays that are everywhere, for this process to compute with."""
        if self.mesh is None:
            return tree
        import jax

        return jax.tree.map(lambda a: a.addressable_data(0), tree)

    # What processes tell each other. All of them must call these, in the same order.

    def gathered(self, values: Any) -> np.ndarray:
        """The values of all processes, by process, along a new first axis."""
        values = np.asarray(values)
        if self.n_processes == 1:
            return values[None]
        from jax.experimental import multihost_utils

        # As bytes: an exchange must not round double precision where JAX computes in single.
        raw = np.frombuffer(np.ascontiguousarray(values).tobytes(), np.uint8)
        with telling_of_loss():
            all_raw = np.asarray(multihost_utils.process_allgather(raw))
        return all_raw.view(values.dtype).reshape(self.n_processes, *values.shape)

    def total(self, values: Any) -> np.ndarray:
        """The sum over processes, in the same order everywhere."""
        return self.gathered(values).sum(axis=0)

    def any(self, value: bool) -> bool:
        """Whether it is so for any process."""
        return bool(self.gathered(value).any())

    def told_by_first(self, content: bytes | None) -> bytes | None:
        """What the first process has to say, or None if it has nothing."""
        if self.n_processes == 1:
            return content
        length = int(self.gathered(-1 if content is None else len(content))[0])
        if length < 0:
            return None
        own = content if self.process == 0 and content is not None else bytes(length)
        return self.gathered(np.frombuffer(own, np.uint8))[0].tobytes()

    def share_of(self, items: Iterable[T]) -> Iterator[T]:
        """The items that are for this process: each is taken by one."""
        return islice(items, self.process, None, self.n_processes)


ONE = Devices()


def devices_of(wanted: str | int | None) -> Devices:
    """The devices for a keyword: None for one, "all" there are, or a number of this process's."""
    if wanted is None:
        return ONE
    import jax
    from jax.sharding import Mesh

    if wanted == "all":
        return Devices(Mesh(np.array(jax.devices()), (ROWS,)))
    if not isinstance(wanted, int) or isinstance(wanted, bool) or wanted < 1:
        raise InputError(f'devices must be None, "all" or a number of devices, not {wanted!r}')
    found = jax.local_devices()[:wanted]
    if len(found) < wanted:
        raise InputError(f"devices={wanted}, but JAX sees {len(found)} in this process")
    return Devices(Mesh(np.array(found), (ROWS,)))


_in_use: ContextVar[str | int | None] = ContextVar("devices", default=None)


@contextmanager
def sharded(devices: str | int | None = "all") -> Iterator[None]:
    """Share each batch of the fits within: `with piefs.sharded("all"): model.fit(X, y)`.

    "all" are the devices that JAX sees, those of other processes included (`jax.distributed`); a
    number is of this process's own. The model is the same up to rounding.
    """
    devices_of(devices)
    token = _in_use.set(devices)
    try:
        yield
    finally:
        _in_use.reset(token)


def devices_in_use() -> Devices:
    """The devices of the `sharded` that this runs in, else one."""
    return devices_of(_in_use.get())


@contextmanager
def telling_of_loss() -> Iterator[None]:
    """Tell of another process's end in plain words."""
    try:
        yield
    except (ValueError, RuntimeError) as error:
        said = str(error)
        if not any(sign in said for sign in SIGNS_OF_LOSS):
            raise
        raise LostProcessError(
            "another process of this run has ended or cannot be reached. Start all of them again "
            f"with --resume; there may be more or fewer of them. ({said.splitlines()[0][:200]})"
        ) from error
