"""One of several processes that train together: `python peers.py ADDRESS N I OUT [DEVICES]`.

Writes what was learned, in float64 and in several ways, to OUT; the first process alone does.
"""

import os
import sys
import warnings

address, n_processes, process, out = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
if len(sys.argv) > 5:
    flag = f"--xla_force_host_platform_device_count={sys.argv[5]}"
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flag}"

import jax  # noqa: E402
import numpy as np  # noqa: E402

from piefs import PIEFSClassifier, processes  # noqa: E402
from piefs.batches import Samples  # noqa: E402
from piefs.config import TrainConfig  # noqa: E402
from piefs.devices import devices_of  # noqa: E402
from piefs.optimizers import Optimizer  # noqa: E402
from piefs.train import train  # noqa: E402

if n_processes > 1:
    processes.join(address, n_processes, process)
rng = np.random.default_rng(0)
x = rng.normal(size=(603, 4))
y = (x[:, 0] * x[:, 1] > 0).astype(np.int32)
weight = rng.uniform(0.5, 2, len(x))
small = {"n_components": 2, "hidden": (6, 5), "metric_hidden": (4,), "seed": 1}
configs = {
    # 101 rows do not divide evenly among devices, and 500 steps let differences grow.
    "in_turn": TrainConfig(
        **small, metric="trotter", batch_size=101, steps_per_component=250, gram="population"
    ),
    "first_step": TrainConfig(
        **small, schedule="nested", steps_per_component=1, optimizer=Optimizer("sgd")
    ),
}
found = {}
for name, config in configs.items():
    precision = np.float32 if name == "first_step" else np.float64
    with jax.enable_x64(precision == np.float64):
        samples = Samples(x.astype(precision), y, weight=weight, devices=devices_of("all"))
        state = train(samples, config, n_outputs=2)
    for i, leaf in enumerate(jax.tree.leaves((state.maps, state.readout, state.params.metric))):
        found[f"{name}.{i}"] = np.asarray(leaf)
    found[f"{name}.energies"] = np.array(state.energies)
    found[f"{name}.ranges"] = np.array(state.log_scale_ranges)
model = PIEFSClassifier(
    2,
    hidden=(6,),
    steps_per_component=500,
    batch_size=64,
    dtype="float64",
    early_stopping=False,
    random_state=0,
    devices="all",
)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # so short a training has its weaknesses
    model.fit(x, y, sample_weight=weight)
found["estimator"] = model.coordinates_
found["center"], found["scale"] = model.center_, model.scale_
if processes.is_first():
    np.savez(out, n_devices=jax.device_count(), **found)
processes.leave()
