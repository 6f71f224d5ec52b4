"""One of several processes that train together: `python peers.py ADDRESS N I OUT N_DEVICES`.

Writes what was learned, in several ways, to OUT; the first process alone does.
"""

import os
import sys
import warnings


def learned(devices, n_steps):
    """What all processes learn, by name; maps in turn take each of these numbers of steps."""
    import jax
    import numpy as np

    import toys
    from piefs import PIEFSClassifier, sharded
    from piefs.training.batches import Samples
    from piefs.training.loop import train

    rng = np.random.default_rng(0)
    x = rng.normal(size=(603, 4))
    y = (x[:, 0] * x[:, 1] > 0).astype(np.int32)
    weight = rng.uniform(0.5, 2, len(x))
    small = {"n_components": 2, "hidden": (6, 5), "metric_hidden": (4,), "seed": 1}
    # 101 rows do not divide evenly among devices.
    in_turn = toys.settings(**small, metric="diag", batch_size=101, gram="population")
    configs = {f"{n}_steps": toys.changed(in_turn, steps_per_component=n) for n in n_steps}
    configs["first_step"] = toys.settings(
        **small, schedule="nested", steps_per_component=1, optimizer="sgd"
    )
    found = {}
    for name, config in configs.items():
        precision = np.float32 if name == "first_step" else np.float64
        with jax.enable_x64(precision == np.float64):
            samples = Samples(x.astype(precision), y, weight=weight, devices=devices)
            state = train(samples, config, n_outputs=2)
        for i, leaf in enumerate(jax.tree.leaves((state.maps, state.readout, state.params.metric))):
            found[f"{name}.{i}"] = np.asarray(leaf)
        found[f"{name}.energies"] = np.array(state.energies)
        found[f"{name}.ranges"] = np.array(state.log_scale_ranges)
    model = PIEFSClassifier(
        2,
        hidden=(6,),
        steps_per_component=10,
        batch_size=64,
        optimizer={"dtype": "float64"},
        early_stopping=False,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so short a training has its weaknesses
        with sharded("all"):
            model.fit(x, y, sample_weight=weight)
    found |= {"center": model.center_, "scale": model.scale_}
    return found | {"estimator": model.coordinates_, "n_devices": jax.device_count()}


def main():
    address, n_processes, process, out, n_devices = sys.argv[1:]
    flag = f"--xla_force_host_platform_device_count={n_devices}"
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flag}"

    import numpy as np

    from piefs.training import runtime
    from piefs.training.sharding import devices_of

    if int(n_processes) > 1:
        runtime.join(address, int(n_processes), int(process))
    # Messages between processes take most of the time: these take few steps, and devices many.
    found = learned(devices_of("all"), (12,) if int(n_processes) > 1 else (12, 250))
    if runtime.is_first():
        np.savez(out, **found)
    runtime.leave()


if __name__ == "__main__":
    main()
