"""Optimizers that treat matrices and other parameters differently: AdamW, or Muon and AdamW as one."""

import torch


class MuonWithAdamW(torch.optim.Optimizer):
    """Muon on some matrices and AdamW on the other parameters, each with its own learning rate.

    Muon moves a matrix by the nearest orthogonal one to the mean of its gradients, so that all its directions are
    learned equally fast; embeddings, norms and the last layer do better with AdamW. Schedules scale both rates.

    Args:
        matrices: parameters with two dimensions, for ``torch.optim.Muon``.
        others: the other parameters, for ``torch.optim.AdamW``.
        lr: learning rate of Muon, a matrix moves by about ``lr * sqrt(max(1, rows / columns))`` in each direction.
        lr_others: learning rate of AdamW.
        momentum: of Muon.
        betas: of AdamW.
        weight_decay: of Muon.

    Raises:
        ValueError: there are no parameters of one kind, or a matrix has not two dimensions.

    Source: Jordan et al. 2024, "Muon".
    """

    def __init__(
        self, matrices, others, *, lr=0.02, lr_others=3e-3, momentum=0.95, betas=(0.9, 0.95), weight_decay=0.0
    ):
        muon = torch.optim.Muon(matrices, lr=lr, momentum=momentum, weight_decay=weight_decay)
        adamw = torch.optim.AdamW(others, lr=lr_others, betas=betas, weight_decay=0.0)
        self._parts = {"muon": muon, "adamw": adamw}
        groups = [group | {"kind": kind} for kind, part in self._parts.items() for group in part.param_groups]
        super().__init__(groups, {})

    @torch.no_grad()
    def step(self, closure=None):
        """One step of both; ``closure`` computes the loss anew, and its value is returned."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for kind, part in self._parts.items():  # a checkpoint or a schedule may have put others in their place
            part.param_groups = [group for group in self.param_groups if group["kind"] == kind]
            part.state = self.state
            part.step()
        return loss


def muon_of(model, inside, **options):
    """`MuonWithAdamW` for a model: Muon takes the matrices of ``inside``, a module of it such as its blocks."""
    matrices = [p for p in inside.parameters() if p.dim() == 2]
    taken = set(map(id, matrices))
    return MuonWithAdamW(matrices, [p for p in model.parameters() if id(p) not in taken], **options)


def adamw_of(model, lr, weight_decay, betas=(0.9, 0.999)):
    """AdamW for a model; matrices decay, biases and norms do not."""
    matrices = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    groups = [{"params": matrices, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW([group for group in groups if group["params"]], lr=lr, betas=betas)
