"""PIEFS as a reader of the paper would first write it, in PyTorch.

Frozen maps are evaluated again at every step, ∇φ comes from autograd (hence a double backward
pass), and Adam updates one tensor after another. Nothing here is slow on purpose.
"""

import torch
from torch import nn


def network(d: int, hidden: int, n_out: int, width: int = 64) -> nn.Sequential:
    """A ReLU network with `hidden` layers."""
    layers: list[nn.Module] = []
    for i in range(hidden):
        layers += [nn.Linear(d if i == 0 else width, width), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(width, n_out))


class Metric(nn.Module):
    """A(x) = Λ(x)U(x)."""

    def __init__(self, d: int, kind: str) -> None:
        super().__init__()
        self.kind = kind
        if kind != "off":
            self.scales = network(d, 2, d)
        if kind == "trotter":
            self.angles = network(d, 2, d - 1)

    def forward(self, x: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """A(x)v."""
        if self.kind == "off":
            return v
        if self.kind == "trotter":
            omega = torch.pi * torch.tanh(self.angles(x))
            v = self.sweep(omega[:, 0::2], v, 0)
            v = self.sweep(omega[:, 1::2], v, 1)
        z = self.scales(x)
        return torch.exp(z - z.mean(1, keepdim=True)) * v

    @staticmethod
    def sweep(omega: torch.Tensor, v: torch.Tensor, first: int) -> torch.Tensor:
        """Rotate the pairs (first, first + 1), (first + 2, first + 3), …"""
        n_pairs = omega.shape[1]
        last = first + 2 * n_pairs
        a, b = v[:, first:last:2], v[:, first + 1 : last : 2]
        c, s = torch.cos(omega), torch.sin(omega)
        pairs = torch.stack([a * c - b * s, a * s + b * c], dim=2).reshape(len(v), 2 * n_pairs)
        return torch.cat([v[:, :first], pairs, v[:, last:]], dim=1)


class Trainer:
    """The inner loop of Algorithm 1 for the map after `n_frozen` frozen ones."""

    def __init__(self, d: int, metric: str, n_frozen: int = 8, n_classes: int = 10) -> None:
        torch.manual_seed(0)
        self.frozen = [network(d, 3, 1).requires_grad_(False) for _ in range(n_frozen)]
        self.phi, self.metric = network(d, 3, 1), Metric(d, metric)
        self.readout = nn.Linear(n_frozen + 1, n_classes)
        parameters = [p for m in (self.phi, self.metric, self.readout) for p in m.parameters()]
        self.optimizer = torch.optim.Adam(parameters, lr=1e-3)

    def step(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """One step on a batch."""
        x = x.requires_grad_(True)
        phi_k = self.phi(x)
        (gradient,) = torch.autograd.grad(phi_k.sum(), x, create_graph=True)
        phi = torch.cat([*(f(x) for f in self.frozen), phi_k], dim=1)
        orth = (phi.T @ phi / len(x) - torch.eye(phi.shape[1])).square().sum()
        energy = self.metric(x, gradient).square().sum(1).mean()
        class_loss = nn.functional.cross_entropy(self.readout(phi), y)
        with torch.no_grad():
            w_class = torch.exp(-orth / 0.1)
            w_mde = torch.exp(-torch.maximum(orth / 0.1, class_loss / 0.5))
        loss = orth + w_class * class_loss + w_mde * energy
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss
