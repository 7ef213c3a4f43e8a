"""What data are to the loop."""

import torch
from toy_line import Points


def test_tensorloader():
    data = Points(num_train=5, batch_size=2)
    batches = list(data.get_tensorloader((data.X, data.y), train=False, indices=slice(1, 6)))
    assert [len(X) for X, _ in batches] == [2, 2, 1] and all(isinstance(batch, list) for batch in batches)
    assert torch.equal(torch.cat([X for X, _ in batches]), data.X[1:6])
    assert torch.equal(torch.cat([y for _, y in batches]), data.y[1:6])
    shuffled = torch.cat([y for (y,) in data.get_tensorloader((torch.arange(90),), train=True)])
    assert shuffled.tolist() != list(range(90)) == sorted(shuffled.tolist())
