"""`python -m lab.experiments.report`: the page of the experiments, from their records alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.stats import t as student_t

from lab.experiments import pictures, stability
from lab.experiments.metric_report import geometry_benchmark, geometry_summary, metrics_study
from lab.experiments.records import RESULTS, load_records
from lab.experiments.tables import Records, datasets_of, of, paired, spread, table
from piefs.data.files import write_bytes
from reproduction.records import Records as StrictRecords
from reproduction.text import headline as strict_headline

PLANES = ("two-moons", "circles")
LEADING = ("1", "2", "4", "8", "16")

INTRODUCTION = """# Past the paper

What the defaults reach, K = 16: the closed form, or for MNIST and the CIFAR-10 embedding networks
(all maps at once, in order, whitened). Settings were chosen on validation rows (LOG.md has the
trials) and are the same in all sections but the last two, which state theirs. Each
table is made from the records in `results/beyond/records/`, which hold seeds, splits, versions and
times, and the settings of our classifiers and regressors; `python -m lab.experiments` makes what is
missing, `python -m lab.experiments.report` this page. Figures are means ± standard deviations over
the seeds or splits in the column n. Methods see the same training rows and are scored on the same
test rows. Baselines have scikit-learn's settings but for 200 trees in forests, ridge with its
penalty cross-validated, and perceptrons that stop early (classes) or after 500 passes (numbers);
for classes the MLP has as many parameters as the 16 maps (the bottleneck-mlp too, its last layer
being 16 units that a logistic regression reads), for numbers as many as one of them. Times are
those of one core that shared the machine with other work: read them as orders of magnitude.
"""

GEOMETRY = """
## Coordinates

Gram error ‖C − I‖²: on the training rows, and the unbiased estimate on test rows. The test images
of MNIST are by other writers than the training images, so their second moments differ;
`mnist-same-writers` holds out training images instead.

"""

LEADING_MAPS = """
Test accuracy in percent of a logistic regression on the first k coordinates alone, refitted for
each k:

"""

OTHERS = """
## Other data

The closed form was developed on other tables (docs/tables.md); these sets are not unseen all the
same, since networks, the default of earlier versions, were tuned with test scores of split 0 in
view.

Random splits (60 % of the rows to fit, 30 % to score), one for each of n. Accuracy in percent, or
R² × 100; the best in bold.

"""

WITHOUT_LABELS = """
## Without labels

Logistic regression on 16 coordinates of MNIST that were learned without labels
(`PIEFSTransformer(supervised=False)`), all 10,000 test images. The paper has 89.85 for its own and
82.52 for NeuralEF, on 5,000.

"""

FEW_LABELS = """
## Few labels

MNIST, so many labels a class, and 10,000 further images without; test accuracy in percent on all
10,000 test images. The second and third row put the further images into orthogonality and
smoothness, the third from a warm start by a graph; `piefs unsupervised, probed` is a logistic
regression on coordinates by a graph of all rows, as `solver="spectral"` has it. The last two are
scikit-learn's.

"""

FEW_LABELS_PICTURE = "\n![Accuracy against the number of labels](figures/labels.png)\n"


def ordered(methods: dict[str, Records]) -> list[tuple[str, Records]]:
    """Ours first, the others by their mean score."""

    def key(item: tuple[str, Records]) -> tuple:
        name, found = item
        return name != "piefs", -np.mean([r.get("accuracy", r.get("r2", 0.0)) for r in found])

    return sorted(methods.items(), key=key)


def main_section(records: Records) -> str:
    """Accuracy, log loss and calibration on the paper's data sets."""
    text = "\n## The paper's data sets\n"
    for dataset in datasets_of(records, "main"):
        rows = [
            [
                f"**{name}**" if name == "piefs" else name,
                spread(found, "accuracy"),
                spread(found, "train_accuracy"),
                spread(found, "log_loss", 1, 4),
                spread(found, "ece", 1, 4),
                spread(found, "seconds", 1, 0),
                str(len(found)),
            ]
            for name, found in ordered(of(records, "main", dataset))
        ]
        if dataset in PLANES:
            rows.append(["Bayes' rule", f"{100 * bayes_row(dataset):.2f}", *["–"] * 4, "1"])
        first = next(iter(of(records, "main", dataset).values()))[0]
        text += f"\n### {dataset}\n\n"
        text += f"{first['n_train']:,} training rows, {first['n_test']:,} test rows.\n\n"
        head = ["method", "test accuracy, %", "training, %", "log loss", "ECE", "seconds", "n"]
        text += table(head, rows)
    return text


def bayes_row(dataset: str) -> float:
    """The accuracy of Bayes' rule on the test rows of a plane's data set."""
    from lab.experiments.bayes import bayes_accuracy
    from lab.experiments.data import PAPER_SETS

    task = PAPER_SETS[dataset](0)
    return bayes_accuracy(dataset, task.x_test, task.y_test)


def corrected_t_test(differences: np.ndarray, test_share: float) -> tuple[float, float]:
    """Mean paired difference and two-sided p over random splits (Nadeau and Bengio, 2003).

    Splits overlap, so the variance of a mean over J of them is (1/J + n_test/n_train) s².
    """
    n = len(differences)
    mean, variance = float(differences.mean()), float(differences.var(ddof=1))
    if not variance:
        return mean, 1.0 if not mean else 0.0
    statistic = mean / np.sqrt((1 / n + test_share) * variance)
    return mean, float(2 * student_t.sf(abs(statistic), n - 1))


def paired_section(records: Records) -> str:
    """HTRU2: differences against each baseline over splits."""
    methods = of(records, "main", "htru2")
    if "piefs" not in methods or len(methods["piefs"]) < 2:
        return ""
    ours = {r["split"]: r for r in methods.pop("piefs")}
    rows = []
    for name, found in sorted(methods.items()):
        pairs = [(ours[r["split"]], r) for r in found if r["split"] in ours]
        if len(pairs) < 2:
            continue
        share = pairs[0][0]["n_test"] / pairs[0][0]["n_train"]
        cells = []
        for measure in ("accuracy", "f1", "mcc", "average_precision"):
            gaps = np.array([100 * (a[measure] - b[measure]) for a, b in pairs])
            mean, p = corrected_t_test(gaps, share)
            cells.append(f"{mean:+.2f} (p = {p:.2f})")
        rows.append([name, *cells, str(len(pairs))])
    head = ["ours less", "accuracy", "F1", "MCC", "average precision", "splits"]
    text = "\n### HTRU2, paired over splits\n\nDifferences in points, with the corrected resampled "
    return text + "t-test (Nadeau and Bengio, 2003).\n\n" + table(head, rows)


def geometry_section(records: Records) -> str:
    """Orthonormality and order of the coordinates."""
    rows, by_maps = [], []
    for dataset in datasets_of(records, "main"):
        found = of(records, "main", dataset).get("piefs", [])
        if not found:
            continue
        n = str(len(found))
        rows.append(
            [
                dataset,
                f"{np.mean([r['gram_error_train'] for r in found]):.1e}",
                spread(found, "gram_error_test", 1, 4),
                spread(found, "energy", 1, 1),
                n,
            ]
        )
        leading = [r["accuracy_by_maps"] for r in found]
        cells = [
            f"{100 * np.mean([r[k] for r in leading]):.2f}" if k in leading[0] else "–"
            for k in LEADING
        ]
        by_maps.append([dataset, *cells, n])
    head = ["data set", "training", "test, unbiased", "Σ energies", "n"]
    leading_head = ["data set", *(f"k = {k}" for k in LEADING), "n"]
    return GEOMETRY + table(head, rows) + LEADING_MAPS + table(leading_head, by_maps)


def others_section(records: Records) -> str:
    """Data sets that no setting was chosen on."""
    names = ("piefs", "random-forest", "gradient-boosting", "mlp")
    head = ["data set", "measure", *names, "linear", "n"]
    rows = []
    for dataset in datasets_of(records, "others"):
        methods = of(records, "others", dataset)
        measure = "r2" if "r2" in next(iter(methods.values()))[0] else "accuracy"
        linear = "ridge" if measure == "r2" else "logistic-regression"
        shown = [methods.get(name, []) for name in (*names, linear)]
        means = [np.mean([r[measure] for r in found]) if found else -np.inf for found in shown]
        cells = [spread(found, measure) for found in shown]
        best = int(np.argmax(means))
        cells[best] = f"**{cells[best]}**"
        rows.append([dataset, measure, *cells, str(len(shown[0]))])
    return OTHERS + table(head, rows)


def comparison(study: str, title: str, words: str) -> Callable[[Records], str]:
    """A section with one table a data set: a study's variants, and paired differences."""

    def section(records: Records) -> str:
        text = ""
        for dataset in datasets_of(records, study):
            methods = of(records, study, dataset)
            reference = next(name for name in ("default", "nested", *methods) if name in methods)
            rows = []
            for name in dict.fromkeys([reference, *methods]):
                found = methods[name]
                rows.append(
                    [
                        name,
                        spread(found, "accuracy"),
                        "–" if name == reference else paired(found, methods[reference], 2),
                        spread(found, "gram_error_test", 1, 3),
                        spread(found, "energy", 1, 1),
                        *(_leading(found, k) for k in ("2", "4")),
                        spread(found, "seconds", 1, 0),
                        str(len(found)),
                    ]
                )
            head = ["variant", "test accuracy, %", "paired", "Gram error, test", "Σ energies"]
            head += ["first 2 maps", "first 4", "seconds", "n"]
            text += f"\n### {dataset}\n\n" + table(head, rows)
        return f"\n## {title}\n\n{words}\n{text}" if text else ""

    return section


def _leading(found: Records, k: str) -> str:
    values = [100 * r["accuracy_by_maps"][k] for r in found if "accuracy_by_maps" in r]
    return f"{np.mean(values):.2f}" if values else "–"


def unsupervised_section(records: Records) -> str:
    """Probes on coordinates that have seen no label."""
    methods = of(records, "unsupervised", "mnist")
    if not methods:
        return ""
    rows = [
        [name, spread(found, "accuracy"), spread(found, "seconds", 1, 0), str(len(found))]
        for name, found in methods.items()
    ]
    return WITHOUT_LABELS + table(["method", "test accuracy, %", "seconds", "n"], rows)


def labels_section(records: Records) -> str:
    """Accuracy against the number of labels."""
    datasets = sorted(datasets_of(records, "labels"), key=lambda name: int(name.split("-")[1]))
    if not datasets:
        return ""
    by_dataset = [of(records, "labels", dataset) for dataset in datasets]
    rows = [
        [name, *(spread(found.get(name, []), "accuracy", 100, 1) for found in by_dataset)]
        for name in of(records, "labels")
    ]
    text = FEW_LABELS + table(["method", *(d.split("-")[1] for d in datasets)], rows)
    return text + FEW_LABELS_PICTURE if len(datasets) > 1 else text


SECTIONS: tuple[Callable[[Records], str], ...] = (
    main_section,
    paired_section,
    geometry_section,
    stability.section,
    others_section,
    comparison(
        "schedules",
        "Schedules",
        "The paper's preset, map after map with our settings, all at once without and with prefix "
        "losses (the\ndefault, `nested`), and the paper's maps polished together. Differences are "
        "paired by seed; read\nthem beside the seconds.",
    ),
    comparison(
        "ablation",
        "Ablation",
        "One ingredient changed at a time; differences to the default, in points, are paired by "
        "seed:\ntheir mean ± its standard error [seeds]. All seeds share one split, so the error "
        "does not include\nthat of the test rows (one row of HTRU2 is 0.04 points). The default "
        "takes `silu` on HTRU2's columns\nand `relu` on those of the embedding.\n\n"
        "![What each change costs](figures/ablation.png)",
    ),
    unsupervised_section,
    labels_section,
    geometry_benchmark,
    metrics_study,
)


PAPER_BEST = {
    "two-moons": "99.88",
    "circles": "100.00",
    "htru2": "97.97",
    "mnist": "95.41",
    "cifar10-embedding": "–",
}
"""Test accuracy of the paper's best variant; its CIFAR-10 embedding is another one."""


def _percent(found: Records) -> float:
    return 100 * float(np.mean([r["accuracy"] for r in found]))


def headline(records: Records) -> str:
    """Ours beside the best baseline and the paper's best, one row a data set."""
    rows = []
    for dataset, paper in PAPER_BEST.items():
        methods = of(records, "main", dataset)
        ours = methods.pop("piefs", [])
        if not ours:
            continue
        others = ordered(methods)
        shown, best = spread(ours, "accuracy"), "–"
        for name, found in others[:1]:
            best = f"{spread(found, 'accuracy')} ({name})"
            gap = round(_percent(ours), 2) - round(_percent(found), 2)
            shown = f"**{shown}**" if gap >= 0 else shown
            best = f"**{best}**" if gap <= 0 else best
        leading = [_leading(ours, k) for k in ("2", "4")]
        cells = [dataset, shown, best, paper, *leading]
        rows.append([*cells, str(len(ours))])
    head = ["data set", "ours", "best baseline", "paper's best", "ours, 2 maps", "4 maps", "n"]
    return table(head, rows)


def page(records: Records) -> str:
    """The whole page."""
    return INTRODUCTION + "".join(section(records) for section in SECTIONS)


def insets(records: Records) -> list[tuple[Path, str, str]]:
    """Tables that stand on other pages: the page, the name between whose marks, the table."""
    return [
        (Path("README.md"), "beyond", headline(records)),
        (Path("docs/paper.md"), "results", strict_headline(StrictRecords("results/records"))),
        (Path("docs/metrics.md"), "geometry", geometry_summary(records)),
    ]


def main() -> None:
    """Write the page, and the tables on others."""
    records = load_records()
    stability.draw(records)
    pictures.draw(records)
    write_bytes(RESULTS / "README.md", page(records).encode())
    for path, name, made in insets(records):
        before, rest = path.read_text(encoding="utf-8").split(f"<!-- {name} -->\n")
        after = rest.split(f"<!-- /{name} -->")[1]
        text = f"{before}<!-- {name} -->\n{made}<!-- /{name} -->{after}"
        write_bytes(path, text.encode())
    print(f"{RESULTS / 'README.md'} and the tables on other pages: {len(records)} records")


if __name__ == "__main__":
    main()
