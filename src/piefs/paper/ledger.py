"""The paper's claims, sentence by sentence, each with the measurement that bears on it."""

from __future__ import annotations

from dataclasses import dataclass

from piefs.paper import checks
from piefs.paper.cells import DATASETS, LOW_DIMENSIONAL
from piefs.paper.evidence import Check, Found, known, on
from piefs.paper.published import ACCURACY, GRAM_ERROR, OFFICIAL, reported_split
from piefs.paper.records import Records, summaries
from piefs.paper.tables import Entry, accuracy_entry

EMBEDDING = "cifar10-embedding"


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, and what came out."""

    quote: str
    where: str
    finding: str
    holds: bool | None


def ledger(records: Records) -> list[Claim]:
    """All claims, in the paper's order."""
    found = Found(records)
    return [Claim(quote, where, *check(found)) for quote, where, check in CLAIMS]


CLAIMS: tuple[tuple[str, str, Check], ...] = (
    (
        "The batch's Gram error exceeds the population's by O(1/B).",
        "Sec. 2.1, Remark",
        checks.gap_falls_with_batch,
    ),
    (
        "1/(1 + g) and polynomial dampening are less robust than the exponential.",
        "Sec. 2.3",
        checks.other_dampenings,
    ),
    (
        "The final stage of minimising the energy regularises, and improves the features.",
        "Sec. 2.3",
        on(
            LOW_DIMENSIONAL,
            checks.smoothness_regularises,
            "what the energy adds to the accuracy, and its Gram error: ",
        ),
    ),
    (
        "The weights put Gram error and classes first, and the energy once these have shrunk.",
        "Sec. 2.3, 3.4",
        on(
            DATASETS,
            checks.smoothness_comes_last,
            "weight of the energy in the first 250 steps, at the end of the first and of the last "
            "map: ",
        ),
    ),
    (
        "Σ log λ_i = 0, so that det Λ = 1; U is orthogonal with determinant one.",
        "Sec. 2.4",
        known("by construction; held by tests of `metrics` and `rotations` while training"),
    ),
    (
        "If Λ is applied before U, the energy no longer differentiates through the rotation.",
        "Sec. 2.4",
        known("an identity, ‖UΛv‖ = ‖Λv‖; held by a test of `metrics`"),
    ),
    (
        "On Two Moons, where LR achieves only 88.2 %, PIEFS-off reaches 99.87 %.",
        "Sec. 3.2",
        checks.versus("two-moons", "piefs-off", "logistic-regression", lambda gap: gap > 10),
    ),
    (
        "On Circles, all three variants reach near-perfect test accuracy (≥ 99.9 %).",
        "Sec. 3.2",
        checks.at_least("circles", 99.9),
    ),
    (
        "On HTRU2, PIEFS-off matches the random forest.",
        "Sec. 3.2",
        checks.versus("htru2", "piefs-off", "random-forest", lambda gap: abs(gap) < 0.3),
    ),
    (
        "On HTRU2, logistic regression matches the random forest.",
        "Sec. 3.2",
        checks.versus("htru2", "logistic-regression", "random-forest", lambda gap: abs(gap) < 0.3),
    ),
    (
        "On HTRU2, PIEFS does not degrade where the raw features are informative already.",
        "Sec. 3.2",
        checks.versus("htru2", "piefs-off", "logistic-regression", lambda gap: gap > -0.1),
    ),
    (
        "On MNIST, NeuralEF does not match PIEFS.",
        "Sec. 3.2",
        checks.versus("mnist", "piefs-off", "neuralef", lambda gap: gap > 5),
    ),
    (
        "On CIFAR-10 embeddings, NeuralEF is 9 points behind PIEFS-off.",
        "Sec. 3.2",
        checks.versus(EMBEDDING, "piefs-off", "neuralef", lambda gap: gap > 5),
    ),
    (
        "On CIFAR-10 embeddings, PIEFS-diag trails PIEFS-off slightly.",
        "Sec. 3.2",
        checks.versus(EMBEDDING, "piefs-diag", "piefs-off", lambda gap: -2 < gap < 0),
    ),
    (
        "A random forest leads on MNIST.",
        "read off Table 2",
        checks.versus("mnist", "piefs-off", "random-forest", lambda gap: gap < 0),
    ),
    (
        "On MNIST and CIFAR-10 embeddings, off is the best of the three metrics.",
        "read off Table 2",
        checks.off_is_best("supervised", "mnist", EMBEDDING),
    ),
    (
        "On CIFAR-10 embeddings, logistic regression is ahead of PIEFS-off.",
        "read off Table 2",
        checks.versus(EMBEDDING, "piefs-off", "logistic-regression", lambda gap: gap < 0),
    ),
    (
        "All data sets converge within the first 15,000 steps and remain stable thereafter.",
        "Sec. 3.4",
        on(DATASETS, checks.converged, "largest change after step 15,000, points: "),
    ),
    (
        "On MNIST the first four maps reach 94.5 % on validation rows, the others add about 0.5.",
        "Sec. 3.4",
        checks.first_four,
    ),
    (
        "The maps are in a spectral order.",
        "Sec. 3.4",
        on(DATASETS, checks.energies_rise, "rank correlation of energy and order: "),
    ),
    (
        "The Gram residual can improve early and deviate later, as other losses become active.",
        "Sec. 3.4, 4",
        on(DATASETS, checks.residual_rises, "at the end of a map, lowest and last: "),
    ),
    (
        "‖C_K − I‖_F = 0.23 on MNIST's validation rows (K = 10, seed 0), entries up to 0.09.",
        "Sec. 3.4",
        checks.gram_figure,
    ),
    (
        "On MNIST the coordinates are competitive with a compact feature dimension.",
        "Sec. 4",
        checks.versus("mnist", "piefs-off", "bottleneck-mlp", lambda gap: gap > -1),
    ),
    (
        "Random forests and logistic regression remain strong on HTRU2.",
        "Sec. 4",
        checks.versus("htru2", "piefs-off", "random-forest", lambda gap: gap < 0.1),
    ),
    (
        "The dynamic weights keep the other losses from spoiling the Gram matrix.",
        "Sec. 4",
        on(
            LOW_DIMENSIONAL, checks.gate_protects_gram, "Gram error with static weights → dynamic: "
        ),
    ),
    (
        "The three graph-Laplacian settings lie within one standard deviation.",
        "App. B",
        checks.laplacian,
    ),
    (
        "Without labels, PIEFS-off matches or exceeds NeuralEF on four of five data sets.",
        "App. C",
        checks.matches_neuralef,
    ),
    (
        "Without labels, the learnable metrics underperform off.",
        "App. C",
        # on HTRU2 trotter is 0.11 ahead in the paper's own table
        checks.off_is_best("unsupervised", *DATASETS, slack=0.2),
    ),
    (
        "Without labels, the learnable metrics reach lower Gram errors than off.",
        "App. C",
        on(DATASETS, checks.lower_gram_without_labels, "off → the larger of the two others: "),
    ),
    ("Without labels, log λ ranges grow up to about 4.", "App. C", checks.log_scales),
    (
        "It is for want of labels that the metric becomes so anisotropic.",
        "App. C",
        on(DATASETS, checks.labels_hold_scales, "widest range of log λ with labels and without: "),
    ),
    (
        "An anisotropy penalty partially restores the metrics toward off.",
        "App. C",
        on(
            LOW_DIMENSIONAL,
            checks.penalty_restores,
            "diag and trotter against off, points, without → with the penalty: ",
        ),
    ),
    (
        "With labels all variants are accurate, whatever their Gram error.",
        "App. D",
        checks.metrics_hardly_matter(lowest=80),
    ),
)

NOT_LOOKED_INTO = "Not looked into yet."
FEWER_MAPS = (
    "The paper speaks of a data-set-matched K and does not name it; ours is 16. With 3 or 4 maps "
    "the number is the paper's: see the table of the number of maps."
)
SHRUNK = (
    "The energy shrinks every map but the constant; the probe, regularised as scikit-learn does by "
    "default, hardly sees them. Z-scored, they separate the classes: see the table of z-scored "
    "coordinates."
)
NOT_BEHIND = (
    "A metric of determinant one takes most of the penalty away, so that fewer maps are shrunk "
    "than with off, and the probe sees more of them. Why that is not so in the paper is not known."
)
EXPLANATIONS: dict[str, str] = {
    "two-moons/neuralef/unsupervised/paper": FEWER_MAPS,
    "two-moons/piefs-off/unsupervised/paper": f"{SHRUNK} Fewer maps do not explain it: see the "
    "table of the number of maps.",
    "circles/piefs-off/unsupervised/paper": SHRUNK,
    "two-moons/piefs-diag/unsupervised/paper": NOT_BEHIND,
    "circles/piefs-diag/unsupervised/paper": SHRUNK,
    "circles/piefs-trotter/unsupervised/paper": SHRUNK,
    "mnist/piefs-diag/supervised/paper": "A metric of determinant one takes most of the penalty "
    "away: accuracy and Gram error lie between those of off and of off without smoothness (see the "
    "table of components). Why the paper's metrics lose a little is not known.",
    "mnist/piefs-off/unsupervised/paper": "Not explained. Tried on validation rows: rates, "
    "batches, input scaling, initialisation and the weight of the energy; all stay at the level of "
    "principal components (LOG.md).",
}
"""Why an accuracy differs from the paper's, as far as experiments can tell."""

FLOOR = (
    "K = 16 and batches of 2048 have a sampling floor of about 0.12, above some of the paper's "
    "numbers here: it must have had fewer maps on this set, or larger batches. See the table of "
    "the number of maps."
)
DIED = (
    "The energy shrinks most of the 16 maps, and each that has died counts 1. With fewer maps "
    "fewer can, but four on Two Moons do not give the paper's error either: see the table of the "
    "number of maps."
)


def why_gram_error_differs(dataset: str, ours: float) -> str:
    """On the low-dimensional sets: above 1 there are maps that have died."""
    if dataset not in LOW_DIMENSIONAL:
        return NOT_LOOKED_INTO
    return DIED if ours > 1 else FLOOR


@dataclass(frozen=True)
class Deviation:
    """A number that is not the paper's, and why."""

    name: str
    entry: Entry
    why: str
    digits: int = 2


def deviations(records: Records) -> list[Deviation]:
    """Accuracies beyond two standard errors of the paper's, and Gram errors beyond a factor 2."""
    every = list(records)
    splits = ("validation", "test", OFFICIAL)
    by_split = {split: summaries(every, split=split) for split in splits}
    found = []
    for key, paper in ACCURACY.items():
        dataset, method = key[:2]
        split = reported_split(dataset, method)
        entry = accuracy_entry(dataset, by_split[split].get(key), paper, split)
        if entry.z is not None and abs(entry.z) > 2:
            name = "/".join(key)
            found.append(Deviation(name, entry, EXPLANATIONS.get(name, NOT_LOOKED_INTO)))
    for key, ours in summaries(every, "gram_error_batch", "", 1.0).items():
        if key[0] == EMBEDDING or key not in GRAM_ERROR:
            continue
        if not 0.5 <= ours.mean / GRAM_ERROR[key][0] <= 2:
            why = why_gram_error_differs(key[0], ours.mean)
            name = f"Gram error, {'/'.join(key)}"
            found.append(Deviation(name, Entry(ours, GRAM_ERROR[key]), why, digits=3))
    return found
