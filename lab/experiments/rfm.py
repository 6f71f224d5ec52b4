"""Recursive feature machines: kernel ridge regression whose metric is its own gradients' AGOP.

After Radhakrishnan, Beaglehole, Pandit and Belkin (Science, 2024): fit with the Laplace kernel
exp(−‖x − z‖_M / L), set M to the average gradient outer product of the fit, and repeat.
"""

from __future__ import annotations

import numpy as np
from scipy.special import softmax

ROUNDS, RIDGE = 6, 1e-3
BANDWIDTHS = (2.0, 5.0, 10.0)


class RecursiveFeatureMachine:
    """A classifier; the round and the bandwidth are those that score best on validation rows."""

    def fit(
        self, x: np.ndarray, y: np.ndarray, x_validation: np.ndarray, y_validation: np.ndarray
    ) -> RecursiveFeatureMachine:
        """Fit on z-scored rows."""
        self.center_, self.scale_ = x.mean(axis=0), x.std(axis=0)
        self.x_ = (x - self.center_) / self.scale_
        onehot = np.eye(int(y.max()) + 1)[y]
        best = -1.0
        for bandwidth in BANDWIDTHS:
            m = np.eye(x.shape[1])
            for _ in range(ROUNDS):
                kernel, weights = self._solve(m, bandwidth, onehot)
                self._state = (m, bandwidth, weights)
                score = float(np.mean(self.predict(x_validation) == y_validation))
                if score > best:
                    best, kept = score, self._state
                m = self._agop(m, bandwidth, kernel, weights)
        self._state = kept
        m, bandwidth, weights = kept
        kernel = self._kernel(self.x_, m, bandwidth)[0]
        self.agop_ = self._agop(m, bandwidth, kernel, weights)
        return self

    def _solve(self, m: np.ndarray, bandwidth: float, onehot: np.ndarray) -> tuple:
        kernel = self._kernel(self.x_, m, bandwidth)[0]
        return kernel, np.linalg.solve(kernel + RIDGE * np.eye(len(kernel)), onehot)

    def _kernel(
        self, x: np.ndarray, m: np.ndarray, bandwidth: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """The kernel between rows of x and the training rows, and their distances."""
        a, b = x @ m, self.x_ @ m
        square = (a * x).sum(1)[:, None] + (b * self.x_).sum(1)[None] - 2 * a @ self.x_.T
        distance = np.sqrt(np.maximum(square, 0))
        return np.exp(-distance / bandwidth), distance

    def _agop(
        self, m: np.ndarray, bandwidth: float, kernel: np.ndarray, weights: np.ndarray
    ) -> np.ndarray:
        """E Σ_c ∇f_c∇f_cᵀ over the training rows, its trace scaled to d."""
        distance = self._kernel(self.x_, m, bandwidth)[1]
        slope = np.where(distance > 1e-6, -kernel / (bandwidth * np.maximum(distance, 1e-6)), 0.0)
        d = self.x_.shape[1]
        total = np.zeros((d, d))
        for column in weights.T:
            pull = slope * column
            gradient = (pull.sum(axis=1)[:, None] * self.x_ - pull @ self.x_) @ m
            total += gradient.T @ gradient
        return total * d / np.trace(total)

    def decision(self, x: np.ndarray) -> np.ndarray:
        """The regressed indicator of each class."""
        m, bandwidth, weights = self._state
        return self._kernel((x - self.center_) / self.scale_, m, bandwidth)[0] @ weights

    def predict(self, x: np.ndarray) -> np.ndarray:
        """The class with the largest indicator."""
        return self.decision(x).argmax(axis=1)

    def predict_proba(self, x: np.ndarray) -> np.ndarray:
        """Indicators as shares; a regression says nothing about their sharpness."""
        return softmax(5 * self.decision(x), axis=1)
