r"""A matrix and a small change to it

A trained linear layer has a matrix W of O x I weights. *Low-rank adaptation* leaves W as it is and learns a change of
low rank beside it: a matrix A of r x I and a matrix B of O x r, with r much smaller than both. With a fixed number
$\alpha$ the layer is then

$$\mathbf Y = \mathbf X \mathbf W^\top + \tfrac{\alpha}{r}\, \mathbf X (\mathbf B \mathbf A)^\top .$$
"""

import torch
from torch.nn import functional as F

from d2lmini.exercises.engine import Choice, Code, Exercise, LargestTensor, Mutant, Option


def adapted(X, W, A, B, alpha):
    """The output of the layer, without a second matrix of the size of W.

    Args:
        X: (..., I), any number of axes in front. W: (O, I). A: (r, I). B: (O, r).
        alpha: a number.

    Returns:
        Y: (..., O). No matrix of the size of W may be made on the way; a check with few rows looks.
    """
    ### BEGIN SOLUTION
    r = len(A)
    small = X @ A.T  # (..., r)
    return X @ W.T + alpha / r * (small @ B.T)
    ### END SOLUTION


def with_linear(X, W, A, B, alpha):
    return F.linear(X, W) + F.linear(F.linear(X, A) * alpha, B) / A.shape[0]


def with_einsum(X, W, A, B, alpha):
    change = torch.einsum("...i,ri,or->...o", X, A, B)
    return torch.einsum("...i,oi->...o", X, W).add(change, alpha=alpha / B.shape[1])


def as_one_matrix(X, W, A, B, alpha):
    return X @ (W + alpha / len(A) * B @ A).T


class _LargestNew(LargestTensor):
    """As `LargestTensor`, without views of what is there."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        before = self.numel
        out = super().__torch_dispatch__(func, types, args, kwargs)
        if func.is_view:
            self.numel = before
        return out


def verify(t, answer):
    for count, case in ((1, "one token"), (7, "some tokens")):
        r, I, O = t.sizes(3, 3, 9)  # noqa: E741
        I, O = 11 * I, 12 * O  # noqa: E741
        alpha = r * t.random.uniform(2.2, 2.8)
        X = t.randn(count, I).requires_grad_()
        W, A, B = t.randn(O, I), t.randn(r, I).requires_grad_(), t.randn(O, r).requires_grad_()
        wide = [x.detach().cpu().double().requires_grad_() for x in (X, W, A, B)]
        x, w, a, b = wide
        changed = w + sum(torch.outer(b[:, i], a[i]) for i in range(r)) * (alpha / r)  # (O, I)
        want = (x[:, None] * changed).sum(-1)
        slope = t.randn(count, O)
        grads = torch.autograd.grad((want * slope.cpu().double()).sum(), (x, a, b))
        with t.watching(_LargestNew, "numel") as seen:
            got = t.call(answer, X, W, A, B, alpha)
        close = (1e-4, 1e-3)
        t.same(got, want, f"Y for {case}", tolerance=close)
        for name, index, grad in (("X", 0, grads[0]), ("A", 2, grads[1]), ("B", 3, grads[2])):
            found = t.gradient(got, index, weights=slope)
            t.same(found, grad, f"the gradient in {name} for {case}", tolerance=close)
        message = "a tensor of O x I numbers was made: from X go to r features, and from these to O"
        t.that(seen.numel < O * I, "as-large-as-W", message)
    X = t.randn(2, 3, 5, I)
    want = (X[..., None, :].cpu().double() * changed.detach()).sum(-1)
    t.same(t.call(answer, X, W, A.detach(), B.detach(), alpha), want, "Y for X of four axes", tolerance=close)


MUTANTS_A = [
    Mutant("as-large-as-W", as_one_matrix),
    Mutant("as-large-as-W", ("small @ B.T", "X @ (B @ A).T")),
    Mutant("without-r", ("alpha / r *", "alpha *"), "the change is multiplied by alpha, and not divided by r"),
    Mutant("without-alpha", ("alpha / r *", "1 / r *"), "alpha is missing"),
    Mutant("one", ("alpha / r *", "1 *"), "the factor alpha / r is missing"),
    Mutant("whole", ("alpha / r *", "alpha // r *"), "alpha / r is rounded down to a whole number: divide with /"),
    Mutant("inverse", ("alpha / r *", "r / alpha *"), "the factor is r / alpha: it is alpha / r"),
    Mutant("product", ("alpha / r *", "alpha * r *"), "the change is multiplied by r: divide"),
    Mutant("root", ("alpha / r *", "alpha / r**0.5 *"), "it is divided by the root of r (rank-stabilised adaptation "
        "does so): here by r"),
    Mutant("by-I", ("r = len(A)", "r = A.shape[1]"), "it is divided by I: r is the number of *rows* of A"),
    Mutant("by-O", ("r = len(A)", "r = len(B)"), "it is divided by O: r is the number of rows of A or of columns of B"),
    Mutant("all-scaled", ("X @ W.T + alpha / r * (small @ B.T)", "alpha / r * (X @ W.T + small @ B.T)"), "W's part is "
        "multiplied by alpha / r as well: only the change is"),
    Mutant("change-alone", ("X @ W.T + ", ""), "this is the change alone: add what W gives"),
    Mutant("W-alone", ("alpha / r * (small @ B.T)", "0 * (small @ B.T)"), "the change is missing: this "
        "is what W gives"),
    Mutant("minus", ("X @ W.T + ", "X @ W.T - "), "the change is subtracted"),
    Mutant("twice", ("small = X @ A.T", "small = alpha / r * (X @ A.T)"), "the factor alpha / r is there twice"),
    Mutant("activation", ("small = X @ A.T", "small = torch.relu(X @ A.T)"), "there is an activation between A and B: "
        "both are linear, or the change could not be added to W"),
    Mutant("one-direction", ("small @ B.T", "small[..., :1] @ B.T[:1]"), "only the first of the r rows of A is used"),
    Mutant("grad", ("small = X @ A.T", "small = X @ A.T.detach()")),
    Mutant("grad", ("(small @ B.T)", "(small @ B.T.detach())")),
    Mutant("mutates", ("return X", "W += alpha / r * (B @ A).detach()\n    return X")),
]  # fmt: skip


def merged(W, A, B, alpha):
    """One matrix for the layer and its change.

    Args:
        W: (O, I). A: (r, I). B: (O, r). alpha: a number.

    Returns:
        (O, I), a new matrix: X times its transpose is what the layer gives for any X.
    """
    ### BEGIN SOLUTION
    return W + alpha / len(A) * (B @ A)
    ### END SOLUTION


def with_addmm(W, A, B, alpha):
    return torch.addmm(W, B, A, alpha=alpha / B.shape[-1])


def row_of_A_after_row(W, A, B, alpha):
    result = W.clone()
    for i in range(len(A)):
        result += alpha / len(A) * B[:, i, None] * A[i]
    return result


def from_its_outputs(W, A, B, alpha):
    eye = torch.eye(W.shape[1], device=W.device, dtype=W.dtype)
    return adapted(eye, W, A, B, alpha).T


class _Shared:
    """Whether the matrix that an answer returns shares its memory with W, seen where the answer lives."""

    def __call__(self, answer, W, *others):
        return answer(W, *others).untyped_storage().data_ptr() == W.untyped_storage().data_ptr()


def verify_merged(t, answer):
    for r in (3, 1, 5):
        I, O = t.sizes(2, 6, 14)  # noqa: E741
        alpha = r * t.random.uniform(2.2, 2.8)
        W, A, B = t.randn(O, I), t.randn(r, I), t.randn(O, r)
        w, a, b = (x.cpu().double() for x in (W, A, B))
        want = w + (alpha / r) * (b[:, :, None] * a).sum(1)
        got = t.call(answer, W, A, B, alpha)
        t.same(got, want, f"the matrix for r = {r}")
        nothing = torch.zeros_like(B)  # as before anything is learned
        t.same(t.call(answer, W, A, nothing, alpha), w, f"the matrix for r = {r} where B is 0")
        for change in (B, nothing):
            shared = t.call(_Shared(), answer, W, A, change, alpha)
            t.that(shared is False, "shared", "the matrix shares its memory with W: make a new one")


MUTANTS_B = [
    Mutant("without-r", ("alpha / len(A)", "alpha"), "the change is multiplied by alpha, and not divided by r"),
    Mutant("without-alpha", ("alpha / len(A)", "1 / len(A)"), "alpha is missing"),
    Mutant("one", ("alpha / len(A) * ", ""), "the factor alpha / r is missing"),
    Mutant("whole", ("alpha / len(A)", "alpha // len(A)"), "alpha / r is rounded down: divide with /"),
    Mutant("root", ("len(A)", "len(A) ** 0.5"), "it is divided by the root of r: here by r"),
    Mutant("by-I", ("len(A)", "A.shape[1]"), "it is divided by I: r is the number of *rows* of A"),
    Mutant("by-O", ("len(A)", "len(B)"), "it is divided by O: r is the number of rows of A, or of columns of B"),
    Mutant("minus", ("W + ", "W - "), "the change is subtracted: so it is taken out of a merged matrix again"),
    Mutant("change-alone", ("W + ", ""), "this is the change alone: add W"),
    Mutant("all-scaled", ("W + alpha / len(A) * (B @ A)", "alpha / len(A) * (W + B @ A)"), "W is multiplied by "
        "alpha / r as well: only the change is"),
    Mutant("one-direction", ("(B @ A)", "(B[:, :1] @ A[:1])"), "only the first row of A is used"),
    Mutant("entries", ("(B @ A)", "(B.sum(1, keepdim=True) * A.sum(0))"), "rows and columns are added up before they "
        "are multiplied: it is the matrix product of B and A"),
    Mutant("W-itself", ("W + alpha / len(A) * (B @ A)", "W + 0 * (B @ A)"), "this is W: the change is missing"),
    Mutant("shared", ("return W", "if not B.any():\n        return W\n    return W")),
    Mutant("mutates", ("W + alpha", "W.add_(0) + alpha * 0 + W.mul_(2) / 2 - W + alpha")),
    Mutant("shape", ("return W + alpha / len(A) * (B @ A)", "return (W + alpha / len(A) * (B @ A)).T")),
]  # fmt: skip


EXERCISE = Exercise(
    key="own-19.5",
    doc=__doc__,
    source="own",
    parts=[
        Code(
            key="own-19.5a",
            prompt="Write `adapted(X, W, A, B, alpha)`, as it is used while A and B are learned.",
            hints=[
                "In which order do you multiply X, A and B, so that nothing gets as large as W?",
                "X times the transpose of A has r features; these times the transpose of B have O.",
                "The rank r is in the shapes: the rows of A.",
            ],
            answer=adapted,
            verify=verify,
            alternatives=[with_linear, with_einsum],
            mutants=MUTANTS_A,
            min_checks=18,
            advice={
                "raised": "If the sizes do not fit: A is (r, I) and B is (O, r), so that both are transposed behind X.",
                "as-large-as-W": "`B @ A` is as large as W.",
                "values": "Compute `X @ (W + alpha / r * B @ A).T` and compare: it has the same values.",
            },
            explanation=r"""
$(\mathbf X \mathbf A^\top)\mathbf B^\top$ takes r (I + O) multiplications a token. $\mathbf B \mathbf A$ first takes
r I O, for a matrix whose gradient would be as large as that of W. For r = 8 and a matrix of 576 x 1,536 the two small
matrices have 16,896 numbers instead of 884,736: that many gradients, and twice that many numbers for Adam.
""",
        ),
        Code(
            key="own-19.5b",
            prompt="Once A and B are learned, they can be added to W, and the layer is an ordinary one again. Write "
            "`merged(W, A, B, alpha)`.",
            hints=[
                "Write the equation as X times *one* transposed matrix.",
                "The transpose of B A stands in it, so that B A is added to W.",
            ],
            answer=merged,
            verify=verify_merged,
            alternatives=[with_addmm, row_of_A_after_row, from_its_outputs],
            mutants=MUTANTS_B,
            min_checks=24,
            advice={"mutates": "W is still needed, to take the change out again: `W + ...`, not `W += ...`."},
            explanation="""
Merged, the change costs nothing more: no time and no memory. Unmerged, many changes can share one W, each for a task or
a customer, and requests for different ones can stand in one batch. Merging and taking out again gives W back only up
to rounding; with W in four bits it is not possible without quantising anew.
""",
        ),
        Choice(
            key="own-19.5c",
            prompt="At the start B is zero and A is drawn at random, so that the layer is what it was. What happens in "
            "the first step of gradient descent?",
            hints=["Which other matrix does the gradient in A contain as a factor? And the gradient in B?"],
            options=[
                Option(
                    "Neither moves: with B zero, both gradients contain a factor that is zero.",
                    "That would be so with A *and* B zero. The gradient in B has the factor A, which is not zero.",
                ),
                Option(
                    "B moves and A does not: the gradient in A has the factor B, which is zero.",
                    "Then B is no longer zero, and from the second step on both move. With A zero and B random it "
                    "would be the other way round.",
                    right=True,
                ),
                Option(
                    "A moves and B does not: a matrix of zeros has a gradient of zero itself.",
                    "The gradient in B does not contain B. It contains A, the input and the gradient of the output.",
                ),
                Option(
                    "Both move, and the first step changes the layer by a matrix of rank 2 r.",
                    "B A never has a rank above r: it is a product with r in the middle.",
                ),
            ],
        ),
    ],
)
