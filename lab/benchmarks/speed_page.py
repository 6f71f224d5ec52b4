"""docs/speed.md and its two pictures."""

from collections.abc import Mapping
from typing import Any

from lab.benchmarks.results import ROOT, machine, table

PAGE, IMAGES = ROOT / "docs/speed.md", ROOT / "docs/images"
METRICS = {"off": "#0072B2", "diag": "#E69F00", "trotter": "#009E73"}


# --- the sections ------------------------------------------------------------------------------


def steps(found: dict[str, Any]) -> str:
    """Training steps a second."""
    rates = found["multiply_rate_gflops"]
    rows = [
        [
            row["d"],
            row["batch"],
            f"`{row['metric']}`",
            f"{row['ours_steps_per_second']:,.0f}",
            f"{row['reference_steps_per_second']:,.0f}",
            f"{row['ratio']:.1f}×",
            f"{row['share_of_multiply_rate']:.2f}",
            f"{row['share_merged']:.2f}",
        ]
        for row in found["rows"]
    ]
    header = ["d", "batch", "metric", "piefs", "PyTorch", "ratio", "share", "share, ours"]
    return f"""## Training steps

Steps a second for one map after eight frozen ones (three hidden layers of 64, ReLU, Adam), both
cores free to both, measured in turns. *PyTorch* is `lab/benchmarks/reference.py`: the method as a
reader of the paper would write it, frozen maps evaluated at every step and ∇φ by autograd. *Share*
is the rate of the step's matrix products against the best float32 multiply rate of the machine in
the same run ({max(rates["all_cores"].values()):.0f} GFLOP/s on all cores,
{max(rates["one_core"].values()):.0f} on one), with the products of plain back-propagation counted
(`lab.costs`); *share, ours* counts only those that our cheaper derivative of a ReLU map
needs. Everything that is not a matrix product costs time and counts for nothing here.

![Steps a second against the PyTorch reference](images/speed.png)

{table(header, rows)}
"""


def seeds(found: dict[str, Any]) -> str:
    """Many models."""
    return f"""## Many models at once

{found["models"]} models (d = {found["d"]}, batch {found["batch"]}, `{found["metric"]}`), one
process a core: {found["steps_per_second_together"]:,.0f} steps a second together,
**{found["ratio"]:.1f}×** the PyTorch reference's {found["reference_steps_per_second"]:,.0f} for
one model on all cores.
"""


def mnist(found: dict[str, Any]) -> str:
    """A whole training."""
    return f"""## The paper's MNIST model

Preset `paper`, metric `off` (16 maps, 60,000 steps, batch 2048), one model on all cores, with
compilation: **{found["fit_seconds"]:.0f} s**, {found["steps_per_second"]:,.0f} steps a second,
{found["validation_accuracy"]:.2f} % on the validation half.
"""


def default(found: dict[str, Any]) -> str:
    """Time to an accuracy."""
    return f"""## The default on MNIST

Preset `default` (all 16 maps at once, {found["steps"]:,} steps of 256 rows), all cores, with
compilation and with scoring on the validation rows as it goes: as accurate as preset `paper`
({found["paper_preset_accuracy"]:.2f} %, {found["paper_preset_seeds"]} seeds) after
**{found["seconds_to_paper_preset"]} s**, as a random
forest of 200 trees ({found["forest_accuracy"]:.2f} %, whose fit takes
{found["forest_fit_seconds"]} s on the same cores) after **{found["seconds_to_forest"]} s**, done
after {found["fit_seconds"]:.0f} s at {found["validation_accuracy"]:.2f} %.
"""


def inference(found: dict[str, Any]) -> str:
    """Using a model."""
    rates, single = found["rows_per_second"], found["single_row_milliseconds"]
    rows = [[name, f"{rates[name]:,}", f"{single[name]:.2f}"] for name in rates]
    return f"""## Using a model

{found["d"]} features, {found["n_components"]} maps ({found["flop_per_row"] / 1e3:.0f} kFLOP a row);
the scikit-learn MLP has hidden layers of {found["mlp_hidden"][0]}, which costs as much a row.

{table(["", "rows a second", "one row, ms"], rows)}
"""


def startup(found: dict[str, Any]) -> str:
    """Before the first step."""
    imports = [[f"`{name}`", f"{value:.2f}"] for name, value in found["import_seconds"].items()]
    compiled = [
        [name, f"{value['new shape']:.2f}", f"{value['seen before']:.2f}"]
        for name, value in found["compile_seconds"].items()
    ]
    return f"""## Before the first step

{table(["import", "seconds"], imports)}

The training loop is compiled once for each shape of batch, features and metric, never for the
number of rows, the map or the budget; compiled programs are kept on disk (`piefs.keep_compiled()`;
the command line does so by itself).

{table(["compiling", "new, s", "seen before, s"], compiled)}
"""


def fits(found: dict[str, Any]) -> str:
    """Against peers."""
    rows = [
        [
            row["dataset"],
            row["model"],
            f"{row['seconds']:.1f}",
            f"{row['validation_accuracy']:.2f}",
            row["peak_mb"],
        ]
        for row in found["rows"]
    ]
    header = ["data", "model", "fit, s", "validation, %", "peak, MB"]
    return f"""## A whole fit, against what one might take instead

Each in a process of its own, inputs z-scored, one seed, compilation included. Accuracies are on
validation rows and only say that the fit was a real one.

{table(header, rows)}
"""


def scaling(found: dict[str, Any]) -> str:
    """Growth."""
    base = ", ".join(f"{name} = {value:,}" for name, value in found["base"].items())
    rows = [
        [row["varied"], f"{row['value']:,}", f"{row['seconds']:.2f}", row["peak_mb"]]
        for row in found["rows"]
    ]
    return f"""## How cost grows

One quantity at a time, the others at {base}; {found["steps_per_map"]} steps a map, metric `off`.
Time does not depend on the number of rows beyond the caching of frozen columns, is linear in K and
in the batch, linear in d once d exceeds the width, and quadratic in the width.

![Time of a fit against rows, features, maps, batch and width](images/scaling.png)

{table(["varied", "value", "fit, s", "peak, MB"], rows)}
"""


SECTIONS = (steps, seeds, mnist, default, inference, startup, fits, scaling)


def page(results: Mapping[str, dict[str, Any]]) -> str:
    """The whole page, from the results alone."""
    present = [section for section in SECTIONS if section.__name__ in results]
    about = machine(results[present[0].__name__])
    head = f"""# Speed

Ratios, each measured in one run on otherwise idle cores by `make bench`, which writes
`lab/benchmarks/results.jsonl` and, from it, this page.

Machine: {about}
"""
    return "\n".join([head, *(section(results[section.__name__]) for section in present)])


# --- the pictures ------------------------------------------------------------------------------


def draw(results: Mapping[str, dict[str, Any]]) -> None:
    """Both pictures."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False})
    if "steps" in results:
        draw_steps(results["steps"]["rows"])
    if "scaling" in results:
        draw_scaling(results["scaling"])


def draw_steps(rows: list[dict[str, Any]]) -> None:
    """Pairs of bars on a log axis, the ratio above them; one panel for each batch size."""
    import matplotlib.pyplot as plt

    batches = sorted({row["batch"] for row in rows})
    figure, axes = plt.subplots(1, len(batches), figsize=(11, 4), sharey=True, layout="constrained")
    for axis, batch in zip(axes, batches, strict=True):
        chosen = [row for row in rows if row["batch"] == batch]
        for i, row in enumerate(chosen):
            ours, reference = row["ours_steps_per_second"], row["reference_steps_per_second"]
            axis.bar(i - 0.2, ours, 0.4, color=METRICS[row["metric"]])
            axis.bar(i + 0.2, reference, 0.4, color="#BBBBBB")
            axis.text(i - 0.2, ours * 1.08, f"{row['ratio']:.1f}×", ha="center", fontsize=8.5)
        dimensions = sorted({row["d"] for row in chosen})
        axis.set_xticks([3 * i + 1 for i in range(len(dimensions))])
        axis.set_xticklabels([f"d = {d}" for d in dimensions])
        axis.set_yscale("log")
        axis.set_title(f"batch {batch}")
        axis.tick_params(axis="x", length=0)
    axes[0].set_ylabel("training steps a second")
    bars = [plt.Rectangle((0, 0), 1, 1, color=color) for color in (*METRICS.values(), "#BBBBBB")]
    labels = [*(f"piefs, {name}" for name in METRICS), "PyTorch reference, same metric"]
    axes[-1].legend(bars, labels, frameon=False, fontsize=9)
    figure.savefig(IMAGES / "speed.png", dpi=130)


def draw_scaling(found: dict[str, Any]) -> None:
    """One panel for each quantity, with the expected slope through its last (or first) point."""
    import matplotlib.pyplot as plt

    labels = {"n": "rows n", "d": "features d", "K": "maps K", "batch": "batch", "width": "width"}
    figure, axes = plt.subplots(
        1, len(labels), figsize=(13, 3.4), sharey=True, layout="constrained"
    )
    for axis, (name, label) in zip(axes, labels.items(), strict=True):
        rows = [row for row in found["rows"] if row["varied"] == name]
        x, y = [row["value"] for row in rows], [row["seconds"] for row in rows]
        slope = found["expected_slopes"][name]
        axis.loglog(x, y, "o-", color="#0072B2", label="measured")
        anchor = -1 if slope else 0
        expected = [y[anchor] * (value / x[anchor]) ** slope for value in x]
        axis.loglog(x, expected, "--", color="#888888", label=f"slope {slope}")
        axis.set_xlabel(label)
        axis.set_xticks(x, [f"{value:,}" if value < 10_000 else f"{value // 1000}k" for value in x])
        axis.minorticks_off()
        axis.set_ylim(0.1, 30)
        axis.legend(frameon=False, fontsize=8.5)
    axes[0].set_ylabel("seconds of a fit")
    figure.savefig(IMAGES / "scaling.png", dpi=130)
