"""A table of 20 GB on disk: what stays in memory, how quick the rows are fed, how cost grows.

Memory is RssAnon of /proc/self/status, sampled every 50 ms: what the process holds for itself and
the system cannot drop. Pages of the mapped file are left out on purpose: the system keeps them
while there is room and takes them back when there is none, so they are no demand. A limit of the
system's own (RLIMIT_DATA, RLIMIT_AS) would count address space that is reserved and never used.
"""

import json
import os
import tempfile
from pathlib import Path
from statistics import median

import numpy as np

from lab.benchmarks.machine import fresh_python

N_ROWS, N_FEATURES = int(os.environ.get("PIEFS_MEMORY_ROWS", "39062500")), 128
SLICE_ROWS = 2_000_000
LIMIT_MB = 2000
MAPS = 4
ROUNDS = 7
GROWTH = (10_000, 100_000, 1_000_000, 10_000_000)

WATCHING = """
import json, sys, threading, time
import numpy as np
import piefs

class Watch(threading.Thread):
    def __init__(self):
        super().__init__(daemon=True)
        self.peak, self.by_stage, self.stage = 0, {}, "start"
    def run(self):
        while True:
            with open("/proc/self/status") as file:
                line = next(line for line in file if line.startswith("RssAnon"))
            now = int(line.split()[1]) / 1024
            self.by_stage[self.stage] = max(self.by_stage.get(self.stage, 0), round(now))
            time.sleep(0.05)
watch = Watch()
watch.start()
"""

FIT = (
    WATCHING
    + """
folder, maps = sys.argv[1], int(sys.argv[2])
rows, y = piefs.open_rows(folder + "/x.npy"), np.load(folder + "/y.npy")
seconds = {}
def timed(name, work):
    watch.stage, start = name, time.perf_counter()
    found = work()
    seconds[name] = round(time.perf_counter() - start, 1)
    return found
model = piefs.PIEFSClassifier(n_components=maps, random_state=0)
timed("fit", lambda: model.fit(rows, y))
phi = timed("transform", lambda: model.transform(rows))
labels = timed("predict", lambda: model.predict(rows[:4_000_000]))
accuracy = float(np.mean(labels == y[: len(labels)]))
watch.stage = "end"
print(json.dumps(dict(
    peak_mb=watch.by_stage, seconds=seconds, accuracy=round(accuracy, 4), steps=model.n_iter_,
    batch=model.settings_.batch_size, coordinates_mb=round(phi.nbytes / 2**20),
)))
"""
)

RATES = """
import json, sys, time
from dataclasses import replace
import numpy as np
import piefs
from piefs.training.batches import Samples
from piefs.core.model import Scaling
from piefs.data.rows import ScaledRows
from piefs.training.loop import train
folder, n_slice, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
x, y = np.load(folder + "/x.npy", mmap_mode="r"), np.load(folder + "/y.npy")
center, scale = np.zeros(x.shape[1]), np.ones(x.shape[1])
inside = Samples(np.array(x[:n_slice]), y[:n_slice].astype(np.int32))
outside = Samples(ScaledRows(x, Scaling(center, scale), np.float32), y.astype(np.int32))

class Clock:
    def __init__(self):
        self.marks = []
    def __call__(self, state):
        self.marks.append((time.perf_counter(), state.step))
    def rate(self, batch):
        ends = [mark for mark in self.marks if mark[1]]
        return batch * (ends[-1][1] - ends[0][1]) / (ends[-1][0] - ends[0][0])

def trained(samples, config, window, seed):
    clock = Clock()
    config = replace(config, optimizer=replace(config.optimizer, shuffle_window=window), seed=seed)
    train(samples, config, n_outputs=2, callbacks=[clock])
    return clock.rate(config.batch_size)

def transformed(model, rows):
    start = time.perf_counter()
    model.transform(rows)
    return len(rows) / (time.perf_counter() - start)

found = {}
for maps in (4,):
    model = piefs.PIEFSClassifier(n_components=maps, steps_per_component=200, random_state=0)
    model.fit(inside.x[:20_000], y[:20_000])
    optimizer = replace(model.settings_.optimizer, log_every=200)
    config = replace(
        model.settings_, steps_per_component=1200, optimizer=optimizer, early_stopping=False
    )
    names = ("train memory", "train file", "transform memory", "transform file")
    rates = {name: [] for name in names}
    for round in range(rounds + 1):
        new = {
            "train memory": trained(inside, config, None, round),
            "train file": trained(outside, config, 2**17, round),
        }
        size = min(500_000, n_slice)
        start = (round * 7 * size) % max(1, len(x) - size)
        new["transform memory"] = transformed(model, inside.x[:size])
        new["transform file"] = transformed(model, x[start : start + size])
        if round:  # the first one compiles
            for name, rate in new.items():
                rates[name].append(rate)
    found[maps] = rates
print(json.dumps(found))
"""

GROW = """
import json, sys, time
import numpy as np
from piefs.training.batches import Samples
from piefs.training.config import Settings
from piefs.training.loop import train
rng = np.random.default_rng(0)
n, steps = int(sys.argv[1]), int(sys.argv[2])
x = rng.standard_normal((n, 8), dtype=np.float32)
samples = Samples(x, (x[:, 0] > 0).astype(np.int32))
def seconds(steps):
    config = Settings(
        n_components=2, steps_per_component=steps, batch_size=1024, hidden=(32, 32),
        activation="relu", learning_rate=1e-3, weight_decay=0.0, early_stopping=False,
    )
    start = time.perf_counter()
    train(samples, config, n_outputs=2)
    return time.perf_counter() - start
epoch = -(-n // 1024)
def least(steps):
    seconds(steps)  # which compiles
    return round(min(seconds(steps) for _ in range(3)), 2)
print(json.dumps(dict(fixed=least(steps), epoch=least(epoch))))
"""


def write_table(folder: Path, n: int) -> None:
    """Normal numbers, and labels by the sign of a product."""
    rng, labels = np.random.default_rng(0), []
    header = {"descr": "<f4", "fortran_order": False, "shape": (n, N_FEATURES)}
    with (folder / "x.npy").open("wb") as file:
        np.lib.format.write_array_header_2_0(file, header)
        for start in range(0, n, 2**16):
            block = rng.standard_normal((min(2**16, n - start), N_FEATURES), dtype=np.float32)
            labels.append((block[:, 0] * block[:, 1] + block[:, 2] > 0).astype(np.int8))
            file.write(block.data)
    np.save(folder / "y.npy", np.concatenate(labels))


def rates(folder: Path) -> list[dict[str, float]]:
    """Rows a second from memory and from the file, taken in turns, and their ratio."""
    slice_rows = min(SLICE_ROWS, N_ROWS // 2)
    found = json.loads(fresh_python(RATES, str(folder), str(slice_rows), str(ROUNDS)))
    rows = []
    for maps, by_name in found.items():
        for work in ("train", "transform"):
            inside, outside = by_name[f"{work} memory"], by_name[f"{work} file"]
            ratios = [b / a for a, b in zip(inside, outside, strict=True)]
            rows.append(
                {
                    "work": work,
                    "maps": int(maps),
                    "memory_rows_per_second": round(median(inside)),
                    "file_rows_per_second": round(median(outside)),
                    "ratio": round(median(ratios), 2),
                    "ratios": [round(min(ratios), 2), round(max(ratios), 2)],
                }
            )
    return rows


def growth() -> dict[str, object]:
    """Seconds of training against the number of rows: at fixed steps, and for one epoch."""
    rows = [{"n": n, **json.loads(fresh_python(GROW, str(n), "1000"))} for n in GROWTH]
    slope, _ = np.polyfit([row["n"] for row in rows], [row["epoch"] for row in rows], 1)
    tenfold = rows[-1]["epoch"] / rows[-2]["epoch"]
    return {
        "rows": rows,
        "epoch_seconds_per_million_rows": round(1e6 * float(slope), 2),
        "epoch_seconds_of_the_largest_over_a_tenth_of_its_rows": round(tenfold, 2),
    }


def run() -> dict[str, object]:
    """Write the table, fit and use it within the limit, compare rates, and remove it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_table(folder, N_ROWS)
        size = (folder / "x.npy").stat().st_size
        fit = json.loads(fresh_python(FIT, name, str(MAPS)))
        print(f"  {fit}", flush=True)
        peak = max(fit["peak_mb"].values())
        if peak > LIMIT_MB:
            raise SystemExit(f"{peak} MB were held in memory; the limit is {LIMIT_MB} MB")
        compared = rates(folder)
        print(f"  {compared}", flush=True)
    return {
        "rows": N_ROWS,
        "features": N_FEATURES,
        "file_gb": round(size / 1e9, 1),
        "maps": MAPS,
        "limit_mb": LIMIT_MB,
        "peak_mb": peak,
        "fit": fit,
        "rates": compared,
        "growth": growth(),
    }
