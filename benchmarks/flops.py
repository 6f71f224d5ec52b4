"""The arithmetic of one training step, counted from the method.

Only matrix products are counted, at two operations for each multiply-add; what is done entry by
entry (activations, sines, the optimiser) is left out. So a share of the machine's multiply rate
that is below one contains all of that, too.
"""


def step_flops(d: int, batch: int, metric: str, *, merged: bool, width: int = 64) -> float:
    """FLOPs of a step with three hidden layers of `width` and metric networks of two.

    `merged` counts our derivative of a ReLU map (8 hidden products, see `piefs.maps`); otherwise
    that of plain back-propagation through value and gradient (12).
    """
    outer, inner, square = (2.0 * batch * d * width, 2.0 * batch * width**2, 2.0 * d * width**2)
    map_ = 2 * outer + (8 if merged else 12) * inner  # xW₁ and its derivative, hidden layers
    if metric == "off":
        factored = 3 * (square + inner) if d > width else 3 * outer  # u(W₁ᵀW₁)u or uW₁ᵀ
        return map_ + factored
    dense_gradient = 3 * outer  # uW₁ᵀ and its two derivatives
    network = (2 + 3) * outer + 3 * inner  # no derivative in x
    return map_ + dense_gradient + network * {"diag": 1, "trotter": 2}[metric]
