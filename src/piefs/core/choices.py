"""What can be chosen by name in the core, known without importing JAX."""

from piefs.errors import InputError

ACTIVATIONS = ("relu", "tanh", "softplus", "gelu", "silu", "sin")
CONSTRAINTS = ("volume", "trace")
DEEP = ("brickwall", "butterfly", "householder", "cayley", "exponential")
"""The rotations that come in sizes: sweeps, repetitions, reflections (an even number), ranks."""
ROTATIONS = ("trotter", "chain", *DEEP, "dense")
METRICS = ("off", "diag", *ROTATIONS, "agop")
SCOPES = ("local", "global", "global-scales", "global-rotation", "composed")
"""Λ(x)U(x); ΛU; ΛU(x); Λ(x)U; Λ(x)U(x)V."""


def check_options(metric: str, scope: str = "local", depth: int | None = None) -> None:
    """Refuse a scope or a depth that means nothing to a named metric."""
    scopes = {"off": SCOPES[:1], "agop": SCOPES[:1], "diag": SCOPES[:2]}.get(metric, SCOPES)
    if scope not in scopes:
        listed = " or ".join(f'"{one}"' for one in scopes)
        choice = f": choose {listed}" if len(scopes) > 1 else ""
        raise InputError(f'the scope "{scope}" has no meaning for metric="{metric}"{choice}')
    if depth is not None and metric not in DEEP:
        listed = ", ".join(f'"{name}"' for name in DEEP)
        raise InputError(f'a depth has no meaning for metric="{metric}": it is for {listed}')
    if metric == "householder" and depth is not None and depth % 2:
        raise InputError(
            f"{depth} reflections are no rotation: the depth of householder must be even"
        )
