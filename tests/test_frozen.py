"""tools/frozen.py sees a change of one bit."""

import torch

from tools.frozen import checksum, differences, model_sums, tokens


def test_a_checksum_is_that_of_bits_shapes_and_dtypes():
    x = torch.tensor([1.0, -0.0])
    assert checksum(x) == checksum(torch.tensor([1.0, 0.0]))
    assert len({checksum(y) for y in (x, x.double(), x[:, None], torch.nextafter(x, x + 1), [x, x])}) == 5


def test_what_differs_is_named():
    assert differences({"a": "1", "b": "2", "c": "3"}, {"a": "1", "b": "4"}) == ["b", "c"]


def test_a_model_has_the_same_sums_twice_and_others_with_other_weights():
    class Model(torch.nn.Module):
        def __init__(self, std):
            super().__init__()
            self.embedding = torch.nn.Embedding(65, 4)
            torch.nn.init.normal_(self.embedding.weight, std=std)

        def forward(self, X):
            return self.embedding(X)

    def sums(std):
        return model_sums(lambda: Model(std), (tokens(2, 3),), lambda model: [model(tokens(1, 2))])

    assert sums(1.0) == sums(1.0)
    assert differences(sums(1.0), sums(2.0)) == ["outputs", "trained outputs", "weights", "written"]
