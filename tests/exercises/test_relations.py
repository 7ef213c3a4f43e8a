"""Values that are wrong for no foreseen reason: how they are related to the right ones is told, where it is so."""

from dataclasses import replace

import pytest
import torch

from d2lmini.exercises.engine import registry, source
from d2lmini.exercises.engine.compare import Compared
from d2lmini.exercises.engine.judge import judge
from d2lmini.exercises.engine.model import Mutant
from d2lmini.exercises.engine.relations import explain

G = torch.Generator().manual_seed(0)
REAL = torch.randn(3, 5, 5, generator=G, dtype=torch.float64)
POSITIVE = REAL.exp()
SHARES = torch.softmax(REAL, dim=-1)
COUNTS = torch.randint(3, 90, (3, 7), generator=G)
FLAGS = torch.rand(4, 6, generator=G) > 0.5


def explained(got, want, given=(), tolerance=None):
    got = got.float() if isinstance(got, torch.Tensor) and got.is_floating_point() else got
    return explain(Compared("the result", got, tolerance, want), given)


@pytest.mark.parametrize(
    ("code", "want", "change", "words"),
    [
        ("sign", REAL, lambda x: -x, "wrong sign"),
        ("signs", REAL, lambda x: x * (1 - 2 * (torch.arange(5) % 2)), "some of the signs"),
        ("factor", REAL, lambda x: 2 * x, "every entry is 2 times"),
        ("factor", REAL, lambda x: -x / 2, "every entry is 1/2 times what it should be, with the wrong sign"),
        ("factor", REAL, lambda x: x / 5, "1/5 times what it should be, and 5 is a size here: a mean for a sum"),
        ("factor", REAL, lambda x: x / torch.tensor(2.0).log(), "1/log 2 times what it should be: a logarithm to an"),
        ("factor", REAL, lambda x: x * 1.234, "every entry is off by one and the same factor"),
        ("zero", REAL, lambda x: 0 * x, "every entry is 0"),
        ("off-by-one", COUNTS, lambda x: x + 1, "every entry is one too large: is something counted too often"),
        ("off-by-one", COUNTS, lambda x: x - (x > 40).long(), "each wrong entry is one too small"),
        ("not", FLAGS, lambda x: ~x, "a `not` too many"),
        ("log", POSITIVE, torch.log, "the logarithm of what it should be"),
        ("exp", REAL, torch.exp, "the exponential"),
        ("square", POSITIVE, torch.square, "the square of"),
        ("root", POSITIVE, torch.sqrt, "the square root of"),
        ("inverse", POSITIVE, torch.reciprocal, "one divided by"),
        ("complement", REAL, lambda x: 1 - x, "one minus"),
        ("transposed", REAL, lambda x: x.mT, "axes 1 and 2 are exchanged"),
        ("reversed", COUNTS, lambda x: x.flip(1), "along axis 1 stand in reverse order"),
        ("order", REAL, lambda x: x.permute(1, 0, 2).reshape(3, 5, 5), "in other places: look at axes"),
        ("before-softmax", SHARES, lambda x: x.log() + 3, "before the softmax along axis 2"),
        ("softmax-axis", SHARES, lambda x: torch.softmax(REAL, 1), "sum to one along axis 1, but should along axis 2"),
        ("not-normalised", SHARES, lambda x: x * POSITIVE[..., :1], "axis 2 the entries are not divided by their sum"),
        ("sums", SHARES, lambda x: x + 0.1 * SHARES.flip(0), "along axis 2 should sum to one, and do not"),
        ("line-factor", REAL, lambda x: x * POSITIVE[:, :, :1], "a factor that is the same along axis 2"),
        ("line-offset", REAL, lambda x: x + POSITIVE[:, :1], "an amount that is the same along axis 1"),
        ("close", REAL, lambda x: x + 0.004 * torch.sin(9 * REAL), "every entry is nearly right"),
    ],
)
def test_each_relation_is_told(code, want, change, words):
    found, sentence = explained(change(want), want)
    assert (found, words in sentence) == (code, True), sentence
    assert "looks as if" not in sentence


def test_an_argument_that_comes_back():
    assert explained(REAL, POSITIVE, (3, REAL.float())) == ("argument", "this is argument number 2, unchanged")
    assert explained(0 * REAL, REAL, (0 * REAL,))[0] == "zero"  # an argument of zeros is not what came back


def test_few_values_are_told_with_doubt_and_no_number_but_a_named_one():
    number = {"tolerance": (1e-9, 0.0)}
    assert explained(8, 7.0, **number)[0] == "off-by-one"
    for got, want in ((7, 3.0), (0.7, 2.0), (1234.5, 7.0), (0, 3.0), (6, 3.0), (4, 6.0), (4.5, 1.5)):
        assert explained(got, want, **number) is None
    assert explained(torch.tensor([2.0, 6.0]), torch.tensor([1.0, 3.0]).double())[1].startswith("it looks as if every")
    assert explained(torch.tensor([1.7, 5.1]), torch.tensor([1.0, 3.0]).double()) is None
    assert "128" not in explained(128 * REAL, REAL, (128,))[1]


def test_of_one_number_no_coincidence_is_told():
    share, layers = torch.tensor(0.64), torch.tensor(-1)
    assert explained(share.double().sqrt(), share.double(), tolerance=(1e-3, 1e-3)) is None
    assert explained(4 * layers.abs(), layers) is None  # four times, and with the wrong sign
    assert explained(-layers, layers)[0] == "sign" and explained(4 * layers, layers) is None
    for got, want in ((81, 9), (3, 8), (3, 9), (0, 1)):  # a square, a logarithm, a root, one minus it
        assert (explained(torch.tensor(got), torch.tensor(want)) or ("none",))[0] in ("none", "off-by-one")


def test_some_entries_one_too_large_may_be_rounded_as_well_as_counted():
    assert explained(COUNTS + (COUNTS > 40).long(), COUNTS)[1] == "each wrong entry is one too large"


def test_rows_of_one_and_zeros_do_sum_to_one():
    one_hot = torch.zeros_like(SHARES).scatter(-1, SHARES.argmax(-1, keepdim=True), 1.0)
    relation = explain(Compared("x", one_hot, None, SHARES))
    assert relation is None or relation[0] != "sums"


def test_right_values_and_noise_are_related_to_nothing():
    assert explained(REAL, REAL) is None
    for seed in range(300):
        g = torch.Generator().manual_seed(seed)
        shape = torch.randint(1, 6, (1 + seed % 3,), generator=g).tolist()
        want, noise = torch.randn(2, *shape, generator=g, dtype=torch.float64)
        assert explained(noise, want, (noise[:1] + 1, want > 0, 5)) is None or want.numel() == 1, (seed, shape)
        flags, other = torch.rand(2, 6, 7, generator=g) > 0.5
        assert explained(flags, other) is None, seed


# on real exercises: what a change of their solutions gets where nobody foresaw it

MISTAKES = [
    ("d2l-11.1.1b", "dim=-1", "dim=-2", "softmax-axis"),
    ("d2l-11.1.1c", "torch.softmax(scores, dim=-1)", "scores.exp()", "not-normalised"),
    ("d2l-11.1.3a", "torch.softmax(cosines / temperature, dim=-1)", "cosines / temperature", "before-softmax"),
    ("d2l-11.1.3b", "return query + step * slope", "return query", "argument"),
    ("d2l-11.1.2", "jacobian(attend, query)", "jacobian(lambda q: -attend(q), query)", "sign"),
    ("d2l-11.4.1a", "dim=1), (hidden, cell)", "dim=1), (cell, hidden)", "exchanged"),
    ("d2l-11.6.2", "self.P[offset:end]", "self.P[: X.shape[1]]", "line-offset"),
    ("d2l-11.7.5", "total * shrink +", "total +", "line-factor"),
    ("own-05.1b", "dim=1)", "dim=0)", "transposed"),
    ("own-05.1b", "moved.any(dim=-1)", "~moved.any(dim=-1)", "not"),
    ("own-09.1a", "offsets.abs() < window", "(offsets.abs() < window) & (offsets != 0)", "diagonal"),
    ("own-09.1c", "n = 0\n", "n = 1\n", "off-by-one"),
    ("own-09.4b", "-slopes[:, None, None] * distances", "-slopes.flip(0)[:, None, None] * distances", "reversed"),
    ("own-10.1a", "[:, order]", "[:, order[order]]", "order"),
    ("own-14.2a", "matrices + biases + router", "N * (matrices + biases) + router", "exchanged"),
    ("own-16.1a", "= probabilities.masked_fill(~kept, 0.0)", "= likeliest.masked_fill(~(before < p), 0.0)", "order"),
    ("own-16.2b", "(n, -1)).mean(dim=1)", "(n, -1)).mean(dim=1).exp()", "exp"),
]


@pytest.mark.parametrize(("key", "old", "new", "code"), MISTAKES)
def test_mistakes_in_real_exercises_are_explained_without_being_foreseen(key, old, new, code):
    part = replace(registry.find(key)[1], mutants=())
    assert judge(part, source.mutant(part, Mutant("any", (old, new))), seed=0).code == code
