r"""A layer that looks k tokens back, built by hand

Position $i$ has the sinusoidal encoding $\mathbf p_i$ of length D (D even): $p_{i,2j} = \sin(i\,\omega_j)$ and
$p_{i,2j+1} = \cos(i\,\omega_j)$ with $\omega_j = 10000^{-2j/D}$, as in `d2l.sinusoidal`. A layer of self-attention
whose inputs are these encodings scores

$$\text{score}(i, s) = \mathbf p_i^\top \mathbf M\, \mathbf p_s , \qquad \mathbf M = \mathbf W_q \mathbf W_k^\top .$$

Training is not needed to make it look back. Write `look_back(k, D)`, which returns a matrix $\mathbf M$ of shape (D,
D), such that

- among the keys of a long sequence the one $k$ places before the query has the greatest score, for *every* query that
  has such a key, also thousands of positions on;
- the score depends on the offset $s - i$ alone: from place to place, scores of one offset differ by less than
  $10^{-6} D$ times the largest entry of $\mathbf M$. (To *fit* such a matrix
  takes float64 and positions up to 20,000 or so: the slowest hands hardly turn before.)

Where $k$ is negative the layer looks ahead.
"""

import torch

import d2lmini as d2l
from d2lmini.exercises.engine import Code, Exercise, Mutant


def look_back(k, D):
    """Make the matrix of a layer that looks k places back.

    Args:
        k: how many places, an integer of either sign.
        D: features of the sinusoidal encoding, even.

    Returns:
        (D, D), a floating-point tensor M; the score of query i and key s is p_i @ M @ p_s.
    """
    ### BEGIN SOLUTION
    angles = k * 10000 ** (-torch.arange(0, D, 2, dtype=torch.float64) / D)  # (D / 2,): how far each hand turns in k
    blocks = [torch.tensor([[a.cos(), a.sin()], [-a.sin(), a.cos()]]) for a in angles]
    return torch.block_diag(*blocks)  # M p_s is p_(s + k)
    ### END SOLUTION


def by_rotary(k, D):
    turned = d2l.rotary(torch.eye(D, dtype=torch.float64)[:, None], offset=abs(k))[:, 0]  # each axis, turned by |k|
    return turned.mT if k < 0 else turned


def by_least_squares(k, D):
    """Fit the map from p_s to p_(s + k), which is linear, and weigh it: any factor will do."""
    i = torch.arange(-20000, 20000, 7, dtype=torch.float64)[:, None]
    frequencies = 10000 ** (-torch.arange(0, D, 2, dtype=torch.float64) / D)
    here, there = (torch.stack([(x * frequencies).sin(), (x * frequencies).cos()], -1).flatten(1) for x in (i, i + k))
    return 3 * torch.linalg.lstsq(here, there).solution.T


def same_angle(k, D):
    """Every hand is turned as far as the first."""
    a = torch.tensor(float(k))
    return torch.block_diag(*[torch.tensor([[a.cos(), a.sin()], [-a.sin(), a.cos()]])] * (D // 2))


def in_halves(k, D):
    """As if all sines came first."""
    order = torch.arange(D).view(-1, 2).T.flatten()
    return by_rotary(k, D)[order.argsort()][:, order.argsort()]


def verify(t, answer):
    small, large = t.random.randint(2, 9), 2 * t.random.randint(2501, 2600) + 1
    for k, D in ((small, 32), (-t.random.randint(2, 9), 48), (0, 32), (1, 18), (large, 18), (-large, 48)):
        length = 80 + abs(k) // 8 * 10
        got = t.call(answer, k, D)
        t.that(isinstance(got, torch.Tensor), "type", f"the result is a {type(got).__name__}, expected a torch.Tensor")
        t.that(tuple(got.shape) == (D, D), "shape", f"the matrix has shape {tuple(got.shape)}, expected {(D, D)}")
        t.that(got.is_floating_point(), "dtype", f"the matrix has dtype {got.dtype}, expected a floating-point one")
        t.that(bool(got.isfinite().all()), "nonfinite", "the matrix has entries that are NaN or infinite")
        M = got.detach().cpu().double()
        t.that(bool(M.abs().max() > 0), "zero", "all scores are zero: no key is preferred")
        for start in (0, 5000):
            angles = torch.arange(start, start + length, dtype=torch.float64)[:, None] * 10000 ** (
                -torch.arange(0, D, 2, dtype=torch.float64) / D
            )
            P = torch.stack([angles.sin(), angles.cos()], -1).flatten(1)  # (length, D)
            i = torch.arange(max(0, k), length + min(0, k))  # queries that have such a key
            i = i[:: len(i) // 60]
            scores = P[i] @ M @ P.T
            best = scores.argmax(1)

            def all_at(offset, best=best, i=i, length=length):
                reached = (i + offset >= 0) & (i + offset < length)
                return bool((best[reached] == (i + offset)[reached]).all()) and bool(reached.any())

            case = f"for k={k}, D={D}, positions from {start} on"
            if k:
                t.that(not all_at(0), "itself", f"{case}: every query looks at its own position")
                t.that(not all_at(k), "ahead", f"{case}: every query looks k places to the other side")
                t.that(not all_at(-2 * k), "twice", f"{case}: every query looks 2k places back: turn once")
            aside = (k < 0) - (k > 0)  # to a side where each of these queries has keys
            levels = scores.gather(1, i[:, None] + torch.tensor([-k, 0, aside]))  # (queries, 3)
            spread = (levels.amax(0) - levels.amin(0)).max().item()
            t.that(
                spread < 1e-6 * D * M.abs().max().item(),
                "not-the-offset",
                f"{case}: scores of one offset differ from place to place; turn each pair (sine, cosine), which stand "
                "side by side, by an angle of its own and nothing else. (A fit takes float64 and tens of thousands of "
                "positions)",
            )
            t.that(
                all_at(-k),
                "elsewhere",
                f"{case}: some query's greatest score is not k places back. Does every hand turn by k times its own "
                "frequency, in radians, however large k is?",
            )


MUTANTS = [
    Mutant("itself", ("k * 10000 **", "0 * 10000 **")),  # identity
    Mutant("ahead", ("k * 10000 **", "-k * 10000 **")),  # looks ahead
    Mutant("ahead", ("torch.block_diag(*blocks)", "torch.block_diag(*blocks).mT")),  # transposed
    Mutant("twice", ("k * 10000 **", "2 * k * 10000 **")),  # turned twice
    Mutant("elsewhere", ("k * 10000 **", "180 / math.pi * k * 10000 **")),  # degrees
    Mutant("elsewhere", ("/ D)  # (D / 2,)", "/ (2 * D))  # (D / 2,)")),  # exponent halved
    Mutant("elsewhere", same_angle),
    Mutant("not-the-offset", ("[-a.sin(), a.cos()]", "[a.sin(), -a.cos()]")),  # mirrored
    Mutant("not-the-offset", in_halves),
    Mutant("shape", ("torch.block_diag(*blocks)", "torch.block_diag(*blocks[:-1])")),  # one pair missing
    Mutant("zero", ("torch.block_diag(*blocks)", "0 * torch.block_diag(*blocks)")),
    Mutant("elsewhere", ("k * 10000 **", "k * 1000 **")),  # base 1000
]  # fmt: skip


EXERCISE = Exercise(
    key="own-06.1",
    doc=__doc__,
    source="own",
    parts=[
        Code(
            key="own-06.1",
            hints=[
                r"$\mathbf p_i^\top \mathbf p_s$ is greatest where $s = i$. So find a matrix with $\mathbf M \mathbf "
                r"p_s = "
                r"\mathbf p_{s+k}$.",
                "Going on by k turns each pair (sine, cosine) by k times its frequency, wherever it starts.",
                r"$\sin(a + b) = \sin a\cos b + \cos a \sin b$ and $\cos(a + b) = \cos a\cos b - \sin a\sin b$: read "
                r"off a "
                "2 by 2 block for each pair, and put the blocks together with `torch.block_diag`.",
            ],
            answer=look_back,
            verify=verify,
            alternatives=[by_rotary, by_least_squares],
            min_checks=20,
            advice={"ahead": "Is a block transposed, or the sign of k lost? sin(a + b) has plus, cos(a + b) has minus"},
            mutants=MUTANTS,
            explanation=r"""
With $\mathbf M \mathbf p_s = \mathbf p_{s+k}$ the score is $\mathbf p_i^\top \mathbf p_{s+k} = \sum_j
\cos\bigl(\omega_j (s + k - i)\bigr)$. All cosines are one where $s = i - k$, and nowhere else, so there it is
greatest. It depends on $s - i$ alone.

So one matrix of a head is enough for "look three tokens back", at every position, seen in training or not. Yet the
models of the chapter's experiment that were trained on this task with sines have 100 % right at 16 tokens, the longest
in training, and 31 % at 64 (means of three seeds). Nothing in training asks for *this* matrix. We suspect that of all
matrices that work up to the trained length most work no farther. Rotary encoding builds the turning into the layer,
and leaves only the angle to be learned. It keeps 44 %, so that this alone is not enough.
""",
        )
    ],
)
