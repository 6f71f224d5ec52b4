"""What a run will cost, before it is begun: arithmetic, bytes, messages, and the time they take.

Arithmetic is counted from the method: matrix products only, at two operations for each
multiply-add; what is done entry by entry (activations, sines, the optimiser) is left out, so the
share of a device's multiply rate that steps reach contains all of that. A step sends two
messages: the gradients, and the sums over rows. docs/plan.md has the formulas, and how well they
predict what was measured.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, log2

from piefs.errors import InputError

SMALL_MESSAGES = 1  # the sums over rows of a step; the gradients are another message
METRICS = ("off", "diag", "trotter")
METRIC_WIDTH = 64


def step_flops(
    d: int,
    batch: int,
    metric: str,
    *,
    merged: bool,
    width: int = 64,
    n_maps: int = 1,
) -> float:
    """FLOPs of a step with three hidden layers of `width` and metric networks of two.

    `merged` counts our derivative of a ReLU map (8 hidden products, see `piefs.core.maps`), else
    that of plain back-propagation through value and gradient (12).
    """
    outer, inner, square = (2.0 * batch * d * width, 2.0 * batch * width**2, 2.0 * d * width**2)
    map_ = 2 * outer + (8 if merged else 12) * inner  # xW₁ and its derivative, hidden layers
    if metric == "off":
        factored = 3 * (square + inner) if d > width else 3 * outer  # u(W₁ᵀW₁)u or uW₁ᵀ
        return n_maps * (map_ + factored)
    dense_gradient = 3 * outer  # uW₁ᵀ and its two derivatives
    network = (2 + 3) * 2.0 * batch * d * METRIC_WIDTH + 3 * 2.0 * batch * METRIC_WIDTH**2
    return n_maps * (map_ + dense_gradient) + network * {"diag": 1, "trotter": 2}[metric]


def n_parameters(d: int, metric: str, *, n_maps: int, n_outputs: int, width: int = 64) -> int:
    """Numbers that descend: maps of three hidden layers, metric networks, prefix readouts."""
    one_map = (d + 1) * width + 2 * (width + 1) * width + width + 1
    hidden = (d + 1) * METRIC_WIDTH + (METRIC_WIDTH + 1) * METRIC_WIDTH
    networks = {
        "off": 0,
        "diag": hidden + (METRIC_WIDTH + 1) * d,
        "trotter": 2 * hidden + (METRIC_WIDTH + 1) * (2 * d - 1),
    }[metric]
    return n_maps * one_map + networks + n_maps * n_outputs * (n_maps + 1)


@dataclass(frozen=True)
class Hardware:
    """What devices, links and disks can do, in FLOP/s, seconds and bytes a second.

    `flops` is what one device multiplies at its best, `share` the part of it that steps reach.
    """

    name: str
    flops: float
    share: float
    latency: float
    bandwidth: float
    reading: float
    devices_per_host: int

    def message_seconds(self, n_bytes: float, n_members: int) -> float:
        """The time to add up so many bytes over all members: hops there and back, and the bytes."""
        if n_members == 1:
            return 0.0
        hops = 2 * ceil(log2(n_members))
        return hops * self.latency + 2 * (n_members - 1) / n_members * n_bytes / self.bandwidth


HARDWARE = {
    # A core of 2020s servers: about 100 GFLOP/s in single precision; messages over TCP.
    "cpu": Hardware("CPU cores, TCP", 1e11, 0.6, 60e-6, 1e9, 1e9, 1),
    # NVIDIA's data sheets: 19.5 and 67 TFLOP/s without tensor cores; NVLink 300 and 450 GB/s each
    # way. The share is an assumption, as are latency and disks.
    "a100": Hardware("NVIDIA A100, NVLink", 19.5e12, 0.3, 10e-6, 300e9, 4e9, 8),
    "h100": Hardware("NVIDIA H100, NVLink", 67e12, 0.2, 10e-6, 450e9, 8e9, 8),
}
NETWORK = {"latency": 30e-6, "bandwidth": 25e9}  # between hosts: 200 Gbit/s Ethernet or InfiniBand


@dataclass(frozen=True)
class Work:
    """A training: the table, the model, and how many times its rows are seen."""

    n_rows: int
    n_features: int
    n_components: int = 16
    n_outputs: int = 10
    metric: str = "off"
    batch_size: int = 4096
    epochs: float = 1.0
    schedule: str = "nested"
    itemsize: int = 4

    def __post_init__(self) -> None:
        if self.metric not in METRICS:
            raise InputError(f"costs are known for {', '.join(METRICS)}, not for {self.metric!r}")
        for name in ("n_rows", "n_features", "n_components", "batch_size", "epochs"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} must be positive, not {getattr(self, name)!r}")

    @property
    def maps_at_once(self) -> int:
        """How many maps descend together."""
        return 1 if self.schedule == "sequential" else self.n_components

    @property
    def n_steps(self) -> int:
        """Steps of all turns; each turn sees the rows `epochs` times."""
        turns = self.n_components // self.maps_at_once
        return turns * max(1, round(self.epochs * self.n_rows / self.batch_size))


@dataclass(frozen=True)
class Plan:
    """What a work costs on so many devices: by step, and in all."""

    work: Work
    hardware: Hardware
    n_devices: int = 1

    @property
    def n_hosts(self) -> int:
        """Machines that the devices are in."""
        return ceil(self.n_devices / self.hardware.devices_per_host)

    @property
    def flops(self) -> float:
        """Arithmetic of a step on one device."""
        work, rows = self.work, ceil(self.work.batch_size / self.n_devices)
        return step_flops(work.n_features, rows, work.metric, merged=True, n_maps=work.maps_at_once)

    @property
    def gradient_bytes(self) -> int:
        """What each device sends in the one large message of a step."""
        work = self.work
        return work.itemsize * n_parameters(
            work.n_features, work.metric, n_maps=work.maps_at_once, n_outputs=work.n_outputs
        )

    @property
    def link(self) -> Hardware:
        """The slowest link a message crosses: the network's, where there are several hosts."""
        if self.n_hosts == 1 or self.hardware.devices_per_host == 1:
            return self.hardware
        slower = {
            "latency": max(NETWORK["latency"], self.hardware.latency),
            "bandwidth": min(NETWORK["bandwidth"], self.hardware.bandwidth),
        }
        return replace(self.hardware, **slower)

    @property
    def compute_seconds(self) -> float:
        """Arithmetic of a step."""
        return self.flops / (self.hardware.share * self.hardware.flops)

    @property
    def message_seconds(self) -> float:
        """Messages of a step."""
        small = SMALL_MESSAGES * self.link.message_seconds(4 * 16, self.n_devices)
        return small + self.link.message_seconds(self.gradient_bytes, self.n_devices)

    @property
    def reading_seconds(self) -> float:
        """Rows of a step, read by each host for its own devices while the step before is taken."""
        work = self.work
        n_bytes = work.batch_size * work.n_features * work.itemsize / self.n_hosts
        return n_bytes / self.hardware.reading

    @property
    def step_seconds(self) -> float:
        """A step: arithmetic and messages one after the other, reading beside them."""
        return max(self.compute_seconds + self.message_seconds, self.reading_seconds)

    @property
    def limit(self) -> str:
        """What takes most of a step."""
        parts = {
            "arithmetic": self.compute_seconds,
            "messages": self.message_seconds,
            "reading": self.reading_seconds,
        }
        return max(parts, key=lambda name: parts[name])

    @property
    def training_seconds(self) -> float:
        """All steps."""
        return self.work.n_steps * self.step_seconds

    @property
    def pass_seconds(self) -> float:
        """The passes over the table besides: scaling, Gram matrix, coordinates, frozen columns."""
        work = self.work
        n_passes = 3 + (work.n_components if work.schedule == "sequential" else 0)
        table = work.n_rows * work.n_features * work.itemsize
        reading = n_passes * table / self.n_hosts / self.hardware.reading
        one_map = 2.0 * work.n_rows * 64 * (work.n_features + 2 * 64)
        rate = self.n_devices * self.hardware.share * self.hardware.flops
        return max(reading, 3 * work.n_components * one_map / rate)

    @property
    def seconds(self) -> float:
        """Everything."""
        return self.training_seconds + self.pass_seconds

    @property
    def efficiency(self) -> float:
        """The time of one device, over the time of all of them together."""
        alone = Plan(self.work, self.hardware).seconds
        return alone / (self.n_devices * self.seconds)

    @property
    def coordinates_bytes(self) -> int:
        """The coordinates of all rows, on each host, in memory or in a file."""
        return self.work.n_rows * self.work.n_components * self.work.itemsize
