"""docs/plan.md."""

from typing import Any

from lab.benchmarks.results import ROOT, machine, table
from lab.costs import HARDWARE, NETWORK, SMALL_MESSAGES, Plan, Work
from lab.plan import duration, size

PAGE = ROOT / "docs/plan.md"
ROWS, FEATURES, EPOCHS = 10**9, 128, 3


def measured(found: dict[str, Any]) -> str:
    """Steps of several processes, measured and predicted."""
    rows = [
        [
            row["processes"],
            row["d"],
            row["batch"],
            row["alone_ms"],
            row["foretold_ms"],
            row["together_ms"],
            f"{row['foretold_ms'] / row['together_ms']:.2f}",
        ]
        for row in found["rows"]
    ]
    header = ["processes", "d", "batch", "alone, ms", "predicted, ms", "measured, ms", "ratio"]
    return table(header, rows)


def verdict(found: dict[str, Any]) -> str:
    """By how much steps took longer than predicted."""
    ratios = [row["together_ms"] / row["foretold_ms"] for row in found["rows"]]
    return f"Steps took {min(ratios):.1f} to {max(ratios):.1f} times what was predicted."


def messages(found: dict[str, Any]) -> str:
    """What a sum over processes takes."""
    by_processes = found["message_microseconds"]
    sizes = list(next(iter(by_processes.values())))
    rows = [
        [size(int(n_bytes)), *(by_processes[n][n_bytes] for n in by_processes)] for n_bytes in sizes
    ]
    return table(["message", *(f"{n} processes, µs" for n in by_processes)], rows)


def apart(found: dict[str, Any]) -> str:
    """How far models of several processes are from that of one."""
    by_processes = found["apart"]
    names = list(next(iter(by_processes.values())))
    rows = [[name, *(f"{by_processes[n][name]:.1e}" for n in by_processes)] for name in names]
    return table(["", *(f"{n} processes" for n in by_processes)], rows)


def extrapolated() -> str:
    """A thousand million rows on one GPU, on eight, and on 64 hosts of eight."""
    rows = []
    for n_devices, batch in ((1, 65536), (8, 65536), (64, 262144), (512, 524288)):
        work = Work(ROWS, FEATURES, batch_size=batch, epochs=EPOCHS)
        plan = Plan(work, HARDWARE["a100"], n_devices)
        rows.append(
            [
                n_devices,
                plan.n_hosts,
                f"{batch:,}",
                f"{work.n_steps:,}",
                duration(plan.compute_seconds),
                duration(plan.message_seconds) if n_devices > 1 else "–",
                duration(plan.reading_seconds),
                plan.limit,
                duration(plan.seconds),
            ]
        )
    header = ["GPUs", "hosts", "batch", "steps", "arithmetic", "messages", "reading", "limit"]
    return table([*header, "in all"], rows)


def page(found: dict[str, Any]) -> str:
    """The whole page."""
    a100, n_small = HARDWARE["a100"], SMALL_MESSAGES
    small_ones = "The small one holds" if n_small == 1 else f"The {n_small} small ones hold"
    small = "message(64 B)" if n_small == 1 else f"{n_small} · message(64 B)"
    then = ""
    if found["small_messages"] != n_small:
        then = f"A step sent {found['small_messages']} small messages then, {n_small} now."
    return f"""# Planning a large training

In a checkout of the repository, `lab.plan` computes what a training will cost before it starts:

```sh
python -m lab.plan --rows 1e9 --features 128 --epochs 3 --devices 8 --hardware a100
```

It counts the arithmetic of a step, the bytes that are read and the messages that devices exchange.
Only the figures of the hardware are guesses; give your own
with `--gflops`, `--share`, `--latency`, `--bandwidth` and `--reading`. In Python it is
`lab.costs.Plan`.

## The formula

With B rows a batch, d features, K maps of three hidden layers of h = 64, and D devices, each device
multiplies, in one step of all maps at once without a metric,

    FLOP = K · (4 b d h + 16 b h² + 3 · (2 d h² + 2 b h²)),   b = B / D, for d > h

(xW₁ and its derivative; eight products of hidden layers; the energy through W₁ᵀW₁). With a metric
the energy of a map takes 6 b d h instead, and each network of the metric, one for a diagonal and
two with a rotation, 10 b d h + 6 b h². The time of a step is

    max( FLOP / (share · rate) + {small} + message(P),  4 B d / hosts / reading )
    message(s) = 2 ⌈log₂ D⌉ · latency + 2 (D − 1) / D · s / bandwidth

where P are the bytes of all parameters, sent in the large message of a step. {small_ones}
sums over rows: losses, Gram matrices and weights (a test counts the messages of a compiled step).
Rows are read while the step before is taken. To the steps come three passes over the table, for
scaling, Gram matrix and coordinates, each shared by all hosts, and one more for each map where maps
are trained in turn.

Memory: a host keeps the labels, some rows around the batches and two chunks of them; the
coordinates of all rows are a file where they are large (64 GB for 10⁹ rows and K = 16).

## How well it predicts

Measured with processes that talk over loopback, pinned to {found["cores"]} cores in turn (so
four processes share two cores' arithmetic), K = {found["K"]}, all maps at once. *Alone* is one
process on one core; *predicted* is its arithmetic, shared, plus messages of the measured times
below. {then}

{measured(found)}

{messages(found)}

{machine(found)}

{verdict(found)} What is missing in the plan is waiting: at each of a step's messages all processes
wait for the slowest, which a machine whose cores also prepare the next rows and share their caches
makes slower still. Take the plan for a lower bound, and the more so the shorter a step is.

Several processes learn the same model as one. The largest difference of any parameter (two maps
with a diagonal metric, batches of 101 rows, which do not divide evenly):

{apart(found)}

## Past these machines

A thousand million rows of {FEATURES} features (512 GB), K = 16, each row seen {EPOCHS} times, on
NVIDIA A100s, eight to a host: {a100.flops / 1e12:.1f} TFLOP/s without tensor cores and 300 GB/s
each way by NVIDIA's data sheet. **Assumed**, since no GPU was at hand: that steps reach
{a100.share:.0%} of that rate; {1e6 * a100.latency:.0f} µs for a message within a host and
{1e6 * NETWORK["latency"]:.0f} µs between hosts; {8 * NETWORK["bandwidth"] / 1e9:.0f} Gbit/s between
hosts; {a100.reading / 1e9:.0f} GB/s from a host's disks. The columns *arithmetic*, *messages* and
*reading* are of one step.

{extrapolated()}

One host's disks limit eight GPUs: spread the table over hosts, or keep it in memory. On 64 hosts
latency limits: batches must grow with the number of devices, and beyond some hundred devices a
training of this size gains little from more of them.
"""
