r"""How many directions does a change have?

Someone has trained a whole matrix further and kept the difference, an O x I matrix called `update`. How much of it
would a change of rank r have held? The best matrix of rank r, the one at the least distance, is found by the singular
value decomposition: keep the r largest singular values and drop the others (Eckart and Young 1936). The distance left,
in the Frobenius norm (the root of the sum of all squared entries), is **the root of the sum of the squares of the
singular values that were dropped**.
"""

import torch

from d2lmini.exercises.engine import Code, Exercise, Mutant


def smallest_ranks(update, tolerances):
    """How many directions are needed.

    Args:
        update: (O, I), not zero.
        tolerances: (n,), numbers from 0.002 on, in any order; from 1 on no direction is needed.

    Returns:
        Integers (n,): for each tolerance the smallest r, from 0, for which some matrix of rank r has at most the
        distance tolerance times the Frobenius norm of the update.
    """
    ### BEGIN SOLUTION
    squares = torch.linalg.svdvals(update).square()  # (min(O, I),), the largest first
    rest = squares.flip(0).cumsum(0).flip(0)  # left after 0, 1, ... directions: added from the smallest on
    rest = torch.cat([rest, rest.new_zeros(1)])  # after all of them: nothing
    enough = rest <= tolerances[:, None] ** 2 * rest[0]  # (n, 1 + min(O, I))
    return enough.int().argmax(dim=1)  # the first that is True
    ### END SOLUTION


def one_after_the_other(update, tolerances):
    values = torch.linalg.svdvals(update)
    ranks = []
    for tolerance in tolerances.tolist():
        r = 0
        while r < len(values) and values[r:].norm() > tolerance * update.norm():
            r += 1
        ranks.append(r)
    return torch.tensor(ranks, device=update.device)


def from_the_gram_matrix(update, tolerances):
    energies = torch.linalg.eigvalsh((update @ update.T).double()).clamp(min=0)  # rising
    tails = torch.cat([energies.new_zeros(1), energies.cumsum(0)])  # of the 0, 1, 2, ... least
    dropped = torch.searchsorted(tails, (tolerances.double() ** 2) * tails[-1] * (1 + 1e-9), right=True) - 1
    return len(energies) - dropped


def _tails(update):
    values = torch.linalg.svdvals(update)
    return values, torch.cat([values.flip(0).square().cumsum(0).flip(0), values.new_zeros(1)])


def by_the_sum(update, tolerances):
    values, _ = _tails(update)
    rest = torch.cat([values.flip(0).cumsum(0).flip(0), values.new_zeros(1)])
    return (rest <= tolerances[:, None] * rest[0]).int().argmax(1)


def by_the_largest(update, tolerances):
    values, _ = _tails(update)
    rest = torch.cat([values, values.new_zeros(1)])
    return (rest <= tolerances[:, None] * values[0]).int().argmax(1)


def by_one_value(update, tolerances):
    values, _ = _tails(update)
    rest = torch.cat([values, values.new_zeros(1)])
    return (rest <= tolerances[:, None] * values.norm()).int().argmax(1)


def without_any_scale(update, tolerances):
    _, rest = _tails(update)
    return (rest.sqrt() <= tolerances[:, None]).int().argmax(1)


def _update(t, O, I, values, size=1.0):  # noqa: E741
    """A matrix with these singular values, times a size."""
    left = torch.linalg.qr(t.randn(O, len(values), dtype=torch.float64).cpu())[0]
    right = torch.linalg.qr(t.randn(I, len(values), dtype=torch.float64).cpu())[0]
    return (size * (left * torch.as_tensor(values, dtype=torch.float64)) @ right.T).float().to(t.device)


def _values(t, count):
    """Falling, each clearly below the one before."""
    return [0.8**i * t.random.uniform(0.97, 1.03) for i in range(count)]


def _between(t, values):
    """Tolerances that lie between what two neighbouring ranks leave, and the ranks."""
    left = [sum(v * v for v in values[r:]) ** 0.5 for r in range(len(values) + 1)]
    shares = [x / left[0] for x in left]
    ranks = t.random.sample(range(1, len(values)), 5)
    return [0.5 * shares[r - 1] + 0.5 * shares[r] for r in ranks], ranks


def verify(t, answer):
    for O, I, size in ((10, 14, 3.0), (15, 9, 0.02), (8, 8, 700.0)):  # noqa: E741
        values = _values(t, min(O, I))
        update = _update(t, O, I, values, size)
        tolerances, ranks = _between(t, values)
        want = torch.tensor(ranks)
        got = t.call(answer, update, torch.tensor(tolerances, device=t.device))
        t.same(got, want, f"the ranks for a matrix of {O} x {I}")
    got = t.call(answer, update, torch.tensor([1.01, 0.99, 0.01], device=t.device))
    t.same(got, torch.tensor([0, 1, 8]), "the ranks for very large and very small tolerances")
    few = _update(t, 9, 12, values[:3])
    got = t.call(answer, few, torch.tensor([0.02, 0.01, 0.004, 0.002], device=t.device))
    t.same(got, torch.tensor([3, 3, 3, 3]), "the ranks of a matrix that has only a few directions")


MUTANTS_A = [
    Mutant("not-squared", by_the_sum, "singular values are added up: the distance is the root of the sum of their "
        "*squares*"),
    Mutant("largest", by_the_largest, "the largest value dropped is compared with the largest of all (that is the "
        "spectral norm): add up the squares of all that are dropped"),
    Mutant("one-value", by_one_value, "the largest value dropped alone is compared: add up the squares of all that are "
        "dropped"),
    Mutant("no-root", ("tolerances[:, None] ** 2", "tolerances[:, None]"), "squares are compared with the tolerance: "
        "compare with its square, or take the root first"),
    Mutant("absolute", without_any_scale, "the distance is compared with the tolerance itself: it is a share of the "
        "update's norm"),
    Mutant("kept", ("tolerances[:, None] ** 2", "(1 - tolerances[:, None] ** 2)"), "the share that may be lost is "
        "taken for the share that must be kept"),
    Mutant("kept-share", ("tolerances[:, None] ** 2", "(1 - tolerances[:, None]) ** 2"), "1 - tolerance is taken for "
        "the share of the norm that may be lost: it is the tolerance"),
    Mutant("one-less", ("return enough.int().argmax(dim=1)", "return (enough.int().argmax(dim=1) - 1).clamp(min=0)"),
        "the ranks are one too small: the first number of a cumulative sum is what *one* direction holds"),
    Mutant("one-more", ("return enough.int().argmax(dim=1)", "return enough.int().argmax(dim=1) + 1"), "the ranks are "
        "one too large: 0 is what no direction leaves"),
    Mutant("never-none", ("return enough.int().argmax(dim=1)", "return enough.int().argmax(dim=1).clamp(min=1)"),
        "where the tolerance is above 1 no direction is needed: the rank is 0"),
    Mutant("smallest-first", ("torch.linalg.svdvals(update).square()", "torch.linalg.svdvals(update).square().flip(0)"),
        "the smallest singular values are kept: keep the largest"),
    Mutant("dropped", ("return enough.int().argmax(dim=1)", "return enough.sum(dim=1) - 1"), "this is how many "
        "directions are *dropped*: it is asked how many are kept"),
    Mutant("first-tolerance", ("tolerances[:, None] ** 2", "tolerances[:1, None].expand(len(tolerances), 1) ** 2"),
        "all tolerances are treated as the first"),
    Mutant("dtype", ("enough.int().argmax(dim=1)", "enough.int().argmax(dim=1).to(update.dtype)")),
    Mutant("shape", lambda update, tolerances: smallest_ranks(update, tolerances)[None]),
]  # fmt: skip


def factors(update, r):
    """The best change of rank r, as low-rank adaptation holds it.

    Args:
        update: (O, I).
        r: at least 1, at most the smaller of O and I.

    Returns:
        (B, A): matrices (O, r) and (r, I) whose product B A is the matrix of rank r that is nearest to the update.
        Both have the same Frobenius norm.
    """
    ### BEGIN SOLUTION
    U, values, Vt = torch.linalg.svd(update, full_matrices=False)  # (O, k), (k,), (k, I)
    roots = values[:r].sqrt()
    return U[:, :r] * roots, roots[:, None] * Vt[:r]
    ### END SOLUTION


def from_eigenvectors(update, r):
    _, vectors = torch.linalg.eigh((update.T @ update).double())  # rising
    basis = vectors.flip(1)[:, :r].to(update.dtype)  # (I, r), orthonormal
    B = update @ basis  # (O, r)
    size = (B.norm() / r**0.5).sqrt()  # of B over that of A, whose rows have the length 1
    return B / size, basis.T * size


def with_diagonal_matrices(update, r):
    U, values, Vh = torch.linalg.svd(update)
    half = torch.diag(values[:r] ** 0.5)
    return U[:, :r] @ half, half @ Vh[:r, :]


def _lopsided(to_B, to_A):
    def factors(update, r):
        U, values, Vt = torch.linalg.svd(update, full_matrices=False)
        return U[:, :r] * values[:r] ** to_B, values[:r, None] ** to_A * Vt[:r]

    return factors


def of_the_last(update, r):
    U, values, Vt = torch.linalg.svd(update, full_matrices=False)
    roots = values[-r:].sqrt()
    return U[:, -r:] * roots, roots[:, None] * Vt[-r:]


def of_rows_and_columns(update, r):
    B, A = update[:, :r], torch.linalg.pinv(update[:, :r]) @ update
    size = (B.norm() / A.norm()).sqrt()
    return B / size, A * size


def verify_factors(t, answer):
    for O, I, r, size in ((10, 14, 3, 1.0), (15, 9, 5, 30.0), (9, 13, 1, 0.05), (8, 11, 8, 1.0)):  # noqa: E741
        update = _update(t, O, I, [size * v for v in _values(t, min(O, I))])
        wide = update.cpu().double()
        _, vectors = torch.linalg.eigh(wide.T @ wide)
        basis = vectors[:, -r:]  # of the r largest eigenvalues
        want = wide @ basis @ basis.T
        got = t.unpack(t.call(answer, update, r), "B", "A")
        case = f"for a matrix of {O} x {I} and r = {r}"
        for name, matrix, shape in (("B", got[0], (O, r)), ("A", got[1], (r, I))):
            t.that(isinstance(matrix, torch.Tensor), "type", f"{name} is no tensor")
            t.that(tuple(matrix.shape) == shape, "shape", f"{name} {case} has the shape {tuple(matrix.shape)}, "
                f"expected {shape}")  # fmt: skip
            t.that(matrix.dtype == update.dtype, "dtype", f"{name} has the type {matrix.dtype}, expected "
                f"{update.dtype}, that of the update")  # fmt: skip
        t.same(got[0] @ got[1], want, f"B A {case}", tolerance=(1e-3, 1e-4 * size))
        ratio = (got[0].norm() / got[1].norm()).item()
        t.that(abs(ratio - 1) < 1e-2, "norms", f"B and A {case} do not have the same Frobenius norm")


MUTANTS_B = [
    Mutant("norms", _lopsided(1, 0)),  # all of it in B
    Mutant("norms", _lopsided(0, 1)),
    Mutant("twice", _lopsided(1, 1), "the singular values are in both factors, so that they count twice: give each "
        "their roots"),
    Mutant("never", _lopsided(0, 0), "the singular values are in neither factor"),
    Mutant("root", ("return U[:, :r] * roots, roots[:, None]", "return U[:, :r] * roots.sqrt(), roots.sqrt()[:, None]"),
        "the singular values are in B A as their roots only"),
    Mutant("of-the-smallest", of_the_last, "the smallest singular values are kept: keep the first r"),
    Mutant("first-columns", of_rows_and_columns, "the first r columns are kept, and what they give of the others: the "
        "nearest matrix needs the singular vectors"),
    Mutant("same-scale", ("roots = values[:r].sqrt()", "roots = values[:r].mean().sqrt().expand(r)"), "all directions "
        "have the same singular value here: each has its own"),
    Mutant("first-only", ("roots = values[:r].sqrt()", "roots = values[:r].sqrt() * (torch.arange(r) == 0)"), "only "
        "the first direction is there: keep r of them"),
    Mutant("normalised", ("roots = values[:r].sqrt()", "roots = (values[:r] / values[0]).sqrt()"), "the singular "
        "values are divided by the largest"),
    Mutant("scaled-up", ("roots = values[:r].sqrt()", "roots = (values[:r] * (values.norm() / values[:r].norm()))"
        ".sqrt()"), "B A is scaled up to the norm of the update: the nearest matrix is smaller"),
    Mutant("minus", ("return U[:, :r] * roots", "return -U[:, :r] * roots"), "the sign of the product is turned"),
    Mutant("shape", ("return U[:, :r] * roots, roots[:, None] * Vt[:r]",
        "return U * values.sqrt(), values.sqrt()[:, None] * Vt")),  # all directions
    Mutant("shape", ("roots[:, None] * Vt[:r]", "(roots[:, None] * Vt[:r]).T")),
    Mutant("shape", ("return U[:, :r] * roots, roots[:, None] * Vt[:r]",
        "return roots[:, None] * Vt[:r], U[:, :r] * roots")),  # A, B
]  # fmt: skip


EXERCISE = Exercise(
    key="own-19.6",
    doc=__doc__,
    source="own",
    parts=[
        Code(
            key="own-19.6a",
            prompt="Write `smallest_ranks(update, tolerances)`.",
            hints=[
                "`torch.linalg.svdvals` gives the singular values, the largest first. The sum of all their squares "
                "is the squared norm of the update.",
                "For each r from 0, write down the sum of the squares of all values from number r on.",
                "Compare it with the squared tolerance times the sum of all squares. The first r that is enough is the "
                "answer: `argmax` of booleans as integers finds it.",
            ],
            answer=smallest_ranks,
            verify=verify,
            alternatives=[one_after_the_other, from_the_gram_matrix],
            mutants=MUTANTS_A,
            min_checks=10,
            advice={
                "values": "Test it with a diagonal matrix of 4, 3, 0: the norm is 5, rank 1 leaves 3 / 5 of it.",
                "dtype": "Ranks are integers: int64, as `argmax` and `sum` of booleans give.",
            },
            explanation=r"""
With the tolerance 0.1, 99 % of the squared norm must be held: 0.1 squared is 0.01. That is easily confused, and papers
that report "90 % of the energy" mean a tolerance of about 0.32.

Whether an update of full training has few directions is a question for an experiment. That an adapter of low rank
reaches the same loss does not need it: the adapter is *trained* at its rank, and need not find the same update.
""",
        ),
        Code(
            key="own-19.6b",
            prompt="Write `factors(update, r)`.",
            hints=[
                "`torch.linalg.svd(update, full_matrices=False)` gives U, the singular values, and V *transposed*.",
                "Keep r columns of U, r values and r rows of the third.",
                "The values must come into the product once: the root of each into B and into A.",
            ],
            answer=factors,
            verify=verify_factors,
            alternatives=[from_eigenvectors, with_diagonal_matrices],
            mutants=MUTANTS_B,
            min_checks=40,
            advice={
                "norms": "Columns of U and rows of Vt have the length 1: give the root of each value to both.",
                "shape": "B has r columns and A has r rows.",
                "raised": "If `Vt` is transposed once more, its sizes do not fit: `svd` gives it transposed already.",
            },
            explanation=r"""
B and A are not unique: $(\mathbf B \mathbf R)(\mathbf R^{-1} \mathbf A)$ is the same product for any invertible R. With
equal norms both are of the same size.
""",
        ),
    ],
)
