"""Checks of the paper's claims: each says what was measured, and whether the claim holds."""

from reproduction.checks.accuracies import (
    all_are_accurate,
    at_least,
    compact_is_competitive,
    every,
    gate_protects_gram,
    laplacian,
    off_is_best,
    other_dampenings,
    smoothness_improves,
    smoothness_regularises,
    versus,
)
from reproduction.checks.labels import (
    labels_hold_scales,
    log_scales,
    lower_gram_without_labels,
    matches_neuralef,
    metric_shrinks_energy,
    penalty_restores,
)
from reproduction.checks.training import (
    converged,
    energies_rise,
    first_four,
    gap_falls_with_batch,
    gram_figure,
    residual_rises,
    smoothness_waits,
)

__all__ = [
    "all_are_accurate",
    "at_least",
    "compact_is_competitive",
    "converged",
    "energies_rise",
    "every",
    "first_four",
    "gap_falls_with_batch",
    "gate_protects_gram",
    "gram_figure",
    "labels_hold_scales",
    "laplacian",
    "log_scales",
    "lower_gram_without_labels",
    "matches_neuralef",
    "metric_shrinks_energy",
    "off_is_best",
    "other_dampenings",
    "penalty_restores",
    "residual_rises",
    "smoothness_improves",
    "smoothness_regularises",
    "smoothness_waits",
    "versus",
]
