"""Position encodings against loops and their own laws; sizes, positions and dtypes that D2L's code cannot take."""

import math

import pytest
import torch

from d2lmini.position import (
    LearnedPositionalEncoding,
    PositionalEncoding,
    RelativePositionBias,
    RelativePositionEmbedding,
    alibi,
    sinusoidal,
)


@pytest.mark.parametrize("size", [1, 2, 7, 8])
def test_sinusoidal_equals_the_formula(size):
    P = sinusoidal(1200, size)
    assert P.shape == (1200, size) and P.dtype == torch.float32
    for i in (0, 1, 5, 1199):
        for feature in range(size):
            angle = i / 10000 ** (2 * (feature // 2) / size)
            expected = math.cos(angle) if feature % 2 else math.sin(angle)
            assert P[i, feature].item() == pytest.approx(expected, abs=1e-6)


def test_going_on_by_k_positions_turns_every_pair_by_the_same_matrix():
    size, k = 8, 5
    P = sinusoidal(50, size).double()
    for j in range(size // 2):
        angle = k * 10000 ** (-2 * j / size)
        turn = torch.tensor([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]]).double()
        pair = P[:, 2 * j : 2 * j + 2]
        torch.testing.assert_close(pair[k:], pair[:-k] @ turn.T, rtol=0, atol=1e-6)


@pytest.mark.parametrize("make", [PositionalEncoding, LearnedPositionalEncoding])
@pytest.mark.parametrize("size", [1, 7, 8])
def test_steps_with_an_offset_equal_the_whole_sequence(make, size):
    encoding = make(size, 0.5, max_len=20).eval()
    X = torch.randn(2, 9, size)
    whole = encoding(X)
    torch.testing.assert_close(whole, X + encoding.P[:, :9])
    steps = torch.cat([encoding(X[:, :4]), *(encoding(X[:, t : t + 1], offset=t) for t in range(4, 9))], 1)
    assert torch.equal(steps, whole)
    assert encoding.P.shape == (1, 20, size)


def test_positions_past_max_len_go_on_by_the_formula():
    short, long = PositionalEncoding(7, 0, max_len=4), PositionalEncoding(7, 0, max_len=2000)
    X = torch.randn(2, 10, 7)
    for offset in (0, 2, 4, 1500):
        torch.testing.assert_close(short(X, offset), long(X, offset))


def test_the_table_of_sines_moves_with_the_module_and_is_in_no_checkpoint():
    encoding = PositionalEncoding(6, 0.0).bfloat16()
    assert encoding.P.dtype == torch.float32 and not encoding.state_dict()  # rounded it would not come back
    X = torch.randn(2, 5, 6).bfloat16()
    output = encoding(X)
    assert output.dtype == torch.bfloat16
    torch.testing.assert_close(output.float(), X.float() + sinusoidal(5, 6), rtol=1e-2, atol=2e-2)
    assert PositionalEncoding(6)(X).dtype == torch.bfloat16  # a table in float32 widens nothing
    assert encoding.to("meta").P.device.type == "meta"


@pytest.mark.parametrize("make", [PositionalEncoding, LearnedPositionalEncoding])
def test_dropout_acts_in_training_alone(make):
    torch.manual_seed(0)
    encoding, X = make(8, 0.5), torch.ones(4, 20, 8)
    clean = encoding.eval()(X)
    dropped = encoding.train()(X)
    kept = dropped != 0
    assert 0.35 < kept.double().mean() < 0.65
    torch.testing.assert_close(dropped[kept], 2 * clean[kept])


def test_learned_positions_get_a_gradient_where_they_are_used_alone():
    encoding = LearnedPositionalEncoding(6, 0.0, max_len=10)
    encoding(torch.zeros(2, 3, 6), offset=4).sum().backward()
    used = encoding.P.grad[0].abs().sum(1) > 0
    assert used.tolist() == [4 <= i < 7 for i in range(10)]
    assert list(encoding.state_dict()) == ["P"]


# --- relative positions; T queries are the last of S positions ---

LENGTHS = [(6, 6), (2, 7), (1, 5), (0, 3)]


def offsets(T, S):
    return [[s - (t + S - T) for s in range(S)] for t in range(T)]


@pytest.mark.parametrize(("T", "S"), LENGTHS)
@pytest.mark.parametrize("k", [0, 2, 20])
def test_shaw_equals_the_double_loop(T, S, k):
    torch.manual_seed(0)
    shaw = RelativePositionEmbedding(5, k).double()
    assert shaw.weight.shape == (2 * k + 1, 5)
    queries, weights = torch.randn(2, 3, T, 5).double(), torch.rand(2, 3, T, S).double()
    table, scores = torch.zeros(T, S, 5).double(), torch.zeros(2, 3, T, S).double()
    average = torch.zeros(2, 3, T, 5).double()
    for t, row in enumerate(offsets(T, S)):
        for s, offset in enumerate(row):
            vector = shaw.weight[min(max(offset, -k), k) + k].detach()
            table[t, s] = vector
            scores[:, :, t, s] = queries[:, :, t] @ vector / 5**0.5
            average[:, :, t] += weights[:, :, t, s, None] * vector
    torch.testing.assert_close(shaw(T, S), table)
    torch.testing.assert_close(shaw.scores(queries, S), scores)
    torch.testing.assert_close(shaw.average(weights), average)


def test_shaw_in_value_and_gradient_equals_its_dense_form():
    shaw = RelativePositionEmbedding(4, 2).double()
    queries = torch.randn(2, 3, 5, 4).double()
    upstream = torch.randn(2, 3, 5, 6).double()
    dense = torch.einsum("bhtd,tsd->bhts", queries, shaw(5, 6)) / 2
    (expected,) = torch.autograd.grad((dense * upstream).sum(), shaw.weight)
    (grad,) = torch.autograd.grad((shaw.scores(queries, 6) * upstream).sum(), shaw.weight)
    torch.testing.assert_close(grad, expected)


def t5_bucket(offset, num_buckets, max_distance, bidirectional):
    """The bucket of one offset, in whole numbers, so that no edge depends on rounding."""
    bucket = 0
    if bidirectional:
        num_buckets //= 2
        bucket = num_buckets if offset > 0 else 0
        distance = abs(offset)
    else:
        distance = max(-offset, 0)
    exact = num_buckets // 2
    if distance < exact:
        return bucket + distance
    wide, up = num_buckets - exact, 0
    # up <= wide * log(distance / exact) / log(max_distance / exact), both sides raised
    while up + 1 < wide and distance**wide * exact ** (up + 1) >= exact**wide * max_distance ** (up + 1):
        up += 1
    return bucket + exact + up


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(("num_buckets", "max_distance"), [(32, 128), (32, 20), (8, 100), (4, 5), (64, 1024)])
def test_t5_buckets_equal_the_double_loop(num_buckets, max_distance, bidirectional):
    if not bidirectional and max_distance <= num_buckets // 2:
        max_distance = num_buckets
    bias = RelativePositionBias(3, num_buckets, max_distance, bidirectional=bidirectional)
    reach = torch.arange(-1500, 1501)
    expected = [t5_bucket(o, num_buckets, max_distance, bidirectional) for o in reach.tolist()]
    assert bias.bucket(reach).tolist() == expected
    for T, S in [*LENGTHS, (9, 40)]:
        output = bias(T, S)
        assert output.shape == (1, 3, T, S)
        for t, row in enumerate(offsets(T, S)):
            for s, offset in enumerate(row):
                bucket = t5_bucket(offset, num_buckets, max_distance, bidirectional)
                assert torch.equal(output[0, :, t, s], bias.weight[bucket])


def test_alibi_by_hand():
    found = alibi(4, 3, 5)
    assert found.shape == (1, 4, 3, 5)
    for i, slope in enumerate((1 / 4, 1 / 16, 1 / 64, 1 / 256)):
        for t in range(3):
            for s in range(5):
                assert found[0, i, t, s].item() == pytest.approx(-slope * max(0, t + 2 - s))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64], ids=str)
def test_relative_positions_in_the_dtype_of_the_queries(dtype):
    shaw = RelativePositionEmbedding(4, 2)
    assert shaw.scores(torch.randn(2, 3, 4).to(dtype), 3).dtype == dtype
    assert shaw.average(torch.rand(2, 3, 3).to(dtype)).dtype == dtype


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sinusoidal(3, 0), "num_hiddens 0"),
        (lambda: PositionalEncoding(6)(torch.ones(2, 3, 5)), r"X has shape \(2, 3, 5\), expected \(batch, pos.*6\)"),
        (lambda: PositionalEncoding(6)(torch.ones(2, 3, 6), offset=-1), "offset is -1, expected 0 or more"),
        (
            lambda: LearnedPositionalEncoding(6, max_len=4)(torch.ones(2, 3, 6), offset=2),
            "positions up to 4 are asked for but only 4 are learned",
        ),
        (lambda: RelativePositionEmbedding(6, -1), "max_offset is -1"),
        (lambda: RelativePositionEmbedding(6, 1)(4, 3), "there are 4 queries but 3 keys"),
        (lambda: RelativePositionEmbedding(6, 1).scores(torch.ones(2, 3, 5), 3), "queries have 5 features, expected 6"),
        (lambda: RelativePositionBias(2)(4, 3), "there are 4 queries but 3 keys"),
        (lambda: RelativePositionBias(2, 7), "num_buckets is 7"),
        (lambda: RelativePositionBias(2, 32, 8), "max_distance 8"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
