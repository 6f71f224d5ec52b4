"""How large a network must be to match K coordinate maps."""

from collections.abc import Sequence
from itertools import pairwise

MAP_HIDDEN = (64, 64, 64)


def n_parameters(sizes: Sequence[int]) -> int:
    """Weights and biases of a fully connected network with layer widths (in, hidden…, out).

    >>> n_parameters((2, 3, 1))
    13
    """
    return sum((fan_in + 1) * fan_out for fan_in, fan_out in pairwise(sizes))


def matched_width(n_features: int, after: Sequence[int], n_maps: int) -> int:
    """The width w at which three hidden layers of w hold as many parameters as `n_maps` maps φ_k.

    The network's widths are (d, w, w, w, *after), the maps' (d, 64, 64, 64, 1). The nearest such w.
    """
    wanted = n_maps * n_parameters((n_features, *MAP_HIDDEN, 1))

    def excess(width: int) -> int:
        return n_parameters((n_features, width, width, width, *after)) - wanted

    above = next(width for width in range(1, wanted + 1) if excess(width) >= 0)
    return min((max(1, above - 1), above), key=lambda width: abs(excess(width)))
