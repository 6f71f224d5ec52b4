"""The paper's table of training components (tab:training_components), and where each is here."""

from __future__ import annotations

HEAD = ("component", "what it does", "here", "in the reported runs")

COMPONENTS: tuple[tuple[str, str, str, str], ...] = (
    ("maps in sequence", "one φ_k at a time, the earlier frozen", '`schedule="sequential"`', "yes"),
    (
        "Gram orthogonality",
        "pulls the batch's Gram matrix to the identity, so that maps say different things",
        '`losses.gram_error`, `gram="batch"`',
        "yes",
    ),
    (
        "cross-entropy readout",
        "a linear classifier on the maps, which bends them to the task",
        "`losses.Readout`",
        "yes; not without labels",
    ),
    (
        "modified Dirichlet penalty",
        "E‖A(x)∇φ_k‖², which keeps maps smooth",
        "`energies`, `gradients`",
        "yes",
    ),
    (
        "dynamic weights",
        "orthogonality first, then the classes, then smoothness",
        '`weighting="exponential"`, `t_orth`, `t_class`',
        "yes; static without labels",
    ),
    (
        "graph-Laplacian pretraining",
        "maps begin as eigenmaps of a neighbourhood graph",
        '`pretraining="graph-laplacian"`',
        "in the ablation on HTRU2 alone",
    ),
    ("metric off", "A = I", '`metric="off"`', "piefs-off"),
    ("metric diag", "A = Λ(x), of determinant 1", '`metric="diag"`', "piefs-diag"),
    ("metric trotter", "A = Λ(x)U(x), rotated first", '`metric="trotter"`', "piefs-trotter"),
)
