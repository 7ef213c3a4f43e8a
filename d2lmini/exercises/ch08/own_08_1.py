r"""AdamW by hand

Adam keeps two running means for each number w, of its gradient g and of the square of that. In D2L's letters (section
12.10; the chapter writes m for v):

$$v_t = \beta_1 v_{t-1} + (1 - \beta_1)\, g_t, \qquad s_t = \beta_2 s_{t-1} + (1 - \beta_2)\, g_t^2 .$$

Both begin at 0, so that for many steps they are too small. What corrects them is known:

$$\hat v_t = \frac{v_t}{1 - \beta_1^t}, \qquad \hat s_t = \frac{s_t}{1 - \beta_2^t} .$$

AdamW then makes two changes, of which the second knows nothing of the gradient:

$$w_t = w_{t-1} - \eta \, \frac{\hat v_t}{\sqrt{\hat s_t} + \epsilon} - \eta \lambda \, w_{t-1} .$$

In code $\eta$ is `lr`, $\lambda$ is `weight_decay`, and t is 1 at the first step.
"""

import math
from functools import partial

import torch

from d2lmini.exercises.engine import Choice, Code, Exercise, Identity, Mutant, Option
from d2lmini.exercises.engine.provenance import Calls


def adamw_step(parameter, gradient, state, lr, betas, eps, weight_decay):
    """One step of AdamW; nothing is changed in place.

    Args:
        parameter, gradient: of one shape and dtype.
        state: dict: ``"step"``, how many steps were made before this one, an integer; ``"v"`` and ``"s"``, the running
            means as they are defined, not corrected. Before the first step these are 0 and zeros.
        lr, eps, weight_decay: numbers. betas: the pair of beta_1 and beta_2.

    Returns:
        (the new parameter, the new state): the latter a dict of the same form.
    """
    ### BEGIN SOLUTION
    beta1, beta2 = betas
    t = state["step"] + 1
    v = beta1 * state["v"] + (1 - beta1) * gradient
    s = beta2 * state["s"] + (1 - beta2) * gradient**2
    v_hat = v / (1 - beta1**t)
    s_hat = s / (1 - beta2**t)
    update = v_hat / (s_hat.sqrt() + eps)
    parameter = parameter - lr * update - lr * weight_decay * parameter
    return parameter, {"step": t, "v": v, "s": s}
    ### END SOLUTION


def shrunk_first(parameter, gradient, state, lr, betas, eps, weight_decay):
    """As torch does it: first the decay, then the step."""
    step = state["step"] + 1
    v = state["v"].lerp(gradient, 1 - betas[0])
    s = torch.addcmul(betas[1] * state["s"], gradient, gradient, value=1 - betas[1])
    root = (s / (1 - betas[1] ** step)).sqrt() + eps
    new = torch.addcdiv(parameter * (1 - lr * weight_decay), v, root, value=-lr / (1 - betas[0] ** step))
    return new, dict(step=step, v=v, s=s)


def in_one_rate(parameter, gradient, state, lr, betas, eps, weight_decay):
    """Kingma and Ba's faster form: both corrections in the rate, and eps corrected with them."""
    (b1, b2), t = betas, state["step"] + 1
    v, s = (b * old + (1 - b) * new for b, old, new in ((b1, state["v"], gradient), (b2, state["s"], gradient**2)))
    root = (1 - b2**t) ** 0.5
    step = root / (1 - b1**t) * v / (s**0.5 + eps * root) + weight_decay * parameter
    return parameter - lr * step, {"s": s, "v": v, "step": t}


# mistakes


def by_torch(parameter, gradient, state, lr, betas, eps, weight_decay):
    p = torch.nn.Parameter(parameter.clone())
    optimizer = torch.optim.AdamW([p], lr, betas, eps, weight_decay)
    v, s = state["v"].clone(), state["s"].clone()
    optimizer.state[p] = {"step": torch.tensor(float(state["step"])), "exp_avg": v, "exp_avg_sq": s}
    p.grad = gradient
    optimizer.step()
    return p.detach(), {"step": state["step"] + 1, "v": v, "s": s}


def decayed_in_the_gradient(parameter, gradient, state, lr, betas, eps, weight_decay):
    """Adam with an L2 term."""
    return adamw_step(parameter, gradient + weight_decay * parameter, state, lr, betas, eps, 0.0)


def state_in_place(parameter, gradient, state, lr, betas, eps, weight_decay):
    parameter, new = adamw_step(parameter, gradient, state, lr, betas, eps, weight_decay)
    state.update(new)
    return parameter, state


CASES = (  # lr, betas, eps, weight_decay, steps before the first that is checked, how many axes, dtype
    (0.05, (0.85, 0.99), 0.05, 0.2, 40, 2, torch.float64),  # first: at step 1 a corrected mean is like a sum
    (0.03, (0.8, 0.95), 0.07, 0.3, 0, 3, torch.float64),
    (0.02, (0.9, 0.98), 0.02, 0.0, 0, 1, torch.float32),
)


def _by_torch(parameter, gradients, lr, betas, eps, weight_decay):
    """torch's parameters and running means after each step, in float64 on the CPU."""
    p = torch.nn.Parameter(parameter.cpu().double().clone())
    optimizer = torch.optim.AdamW([p], lr, betas, eps, weight_decay)
    seen = []
    for gradient in gradients:
        p.grad = gradient.cpu().double()
        optimizer.step()
        kept = optimizer.state[p]
        seen.append([x.detach().clone() for x in (p, kept["exp_avg"], kept["exp_avg_sq"])])
    return seen


def verify_step(t, answer):
    for lr, betas, eps, decay, before, axes, dtype in CASES:
        shape = t.sizes(axes, 3)
        lr, decay = lr * t.random.uniform(0.8, 1.2), decay * t.random.uniform(0.8, 1.2)
        parameter = t.randn(*shape, dtype=dtype)
        sizes = 10 ** t.rand(*shape, low=-1.5, high=0.5, dtype=dtype)
        gradients = [sizes * t.randn(*shape, dtype=dtype) for _ in range(before + 4)]
        gradients[-2] = torch.zeros_like(gradients[-2])  # the means and the decay go on
        want = _by_torch(parameter, gradients, lr, betas, eps, decay)
        state = {"step": before, "v": torch.zeros_like(parameter), "s": torch.zeros_like(parameter)}
        if before:
            parameter, state["v"], state["s"] = (x.to(t.device) for x in want[before - 1])
        for number in range(before, before + 4):
            with t.watching(partial(Calls, "torch.optim."), "names") as seen:
                got = t.call(answer, parameter, gradients[number], state, lr, betas, eps, decay)
            t.that(not seen.names, "borrowed", "this calls torch's own optimizer: write the formulas yourself")
            parameter, state = t.unpack(got, "parameter", "state")
            step, v, s = t.fields(state, "step", "v", "s")
            where = f"at step {number + 1}{'' if decay else ' without decay'}"
            t.same(v, want[number][1], f'state["v"] {where}')
            t.same(s, want[number][2], f'state["s"] {where}')
            t.same(parameter, want[number][0], f"the parameter {where}")
            t.number(step, number + 1, f'state["step"] {where}')
            t.that(isinstance(step, int), "type", f'state["step"] {where} is a {type(step).__name__}, expected an int')
            state = {"step": int(step), "v": v, "s": s}


def same_gradient_again(gradient, steps, lr, betas, eps):
    """What Adam changes while the gradient stays the same; no weight decay.

    Args:
        gradient: (D,), float64; some are very small.
        steps: how many steps are made from the initial state, 1 or more.
        lr, eps: numbers. betas: the pair of beta_1 and beta_2.

    Returns:
        (left, right), both (D,): ``left`` the change of the parameter in the *last* of the steps, by Adam's recursion;
        ``right`` what it is by a formula in which neither the betas nor the number of steps occur.
    """
    ### BEGIN SOLUTION
    beta1, beta2 = betas
    v, s = torch.zeros_like(gradient), torch.zeros_like(gradient)
    for _ in range(steps):
        v = beta1 * v + (1 - beta1) * gradient
        s = beta2 * s + (1 - beta2) * gradient**2
    left = -lr * (v / (1 - beta1**steps)) / ((s / (1 - beta2**steps)).sqrt() + eps)
    right = -lr * gradient / (gradient.abs() + eps)
    return left, right
    ### END SOLUTION


def step_by_step(gradient, steps, lr, betas, eps):
    state = {"step": 0, "v": gradient * 0, "s": gradient * 0}
    for _ in range(steps):
        new, state = shrunk_first(gradient * 0, gradient, state, lr, betas, eps, 0.0)
    return new, -lr * gradient.sign() / (1 + eps / gradient.abs())


def by_torchs_adam(gradient, steps, lr, betas, eps):
    p = torch.nn.Parameter(torch.zeros_like(gradient))
    optimizer = torch.optim.Adam([p], lr, betas, eps)
    for _ in range(steps):
        before, p.grad = p.detach().clone(), gradient.clone()
        optimizer.step()
    return p.detach() - before, -lr * gradient / (gradient.abs() + eps)


def verify_again(t, answer):
    for steps in (1, 2, t.random.randint(5, 9), 60):
        D = t.random.randint(5, 8)
        sizes = 10 ** t.rand(D, low=-6.0, high=1.0, dtype=torch.float64)
        gradient = sizes * (2 * t.integers(0, 2, D) - 1)
        gradient[:3] = gradient.new_tensor([-1e-6, 2.0, -3e-3])
        lr, eps = t.random.uniform(0.5, 1.5), 10 ** t.random.uniform(-4, -2)
        betas = t.random.uniform(0.7, 0.9), t.random.uniform(0.92, 0.98)
        want = torch.tensor([-lr * g / (abs(g) + eps) for g in gradient.tolist()], dtype=torch.float64)
        with t.watching(partial(Calls, "torch.optim."), "names") as seen:
            got = t.unpack(t.call(answer, gradient, steps, lr, betas, eps), "left", "right")
        t.that(not seen.names, "borrowed", "this calls torch's own optimizer: write the recursion yourself")
        for side, value in zip(("left", "right"), got, strict=True):
            t.same(value, want, f"{side} at step {steps}", tolerance=(1e-8, 1e-13))
    # the values are those of both sides, so ask where they come from: NaN spreads to all that the betas go into
    left, right = t.unpack(t.call(answer, gradient, steps, lr, (math.nan, math.nan), eps), "left", "right")
    t.that(
        isinstance(left, torch.Tensor) and bool(left.isnan().all()),
        "not-recursive",
        "left stays the same whatever the betas are: it is to come from the recursion, step by step, and right from "
        "the formula",
    )
    t.that(
        isinstance(right, torch.Tensor) and bool(right.isfinite().all()),
        "not-a-formula",
        "right needs the betas: it is to be a formula in which they do not occur, and left the recursion",
    )


MUTANTS_A = [
    Mutant("uncorrected", ("v_hat = v / (1 - beta1**t)\n    s_hat = s / (1 - beta2**t)", "v_hat, s_hat = v, s"),
        "neither running mean is corrected: divide them by 1 - beta^t"),
    Mutant("v-uncorrected", ("v / (1 - beta1**t)", "v"), "v is not corrected: the first steps are too short. Divide it "
        "by 1 - beta_1^t"),
    Mutant("s-uncorrected", ("s / (1 - beta2**t)", "s"), "s is not corrected: divide it by 1 - beta_2^t, at "
        "every step. Without that the first steps are too long"),
    Mutant("corrected-once", ("(1 - beta1**t)\n    s_hat = s / (1 - beta2**t)",
        "(1 - beta1)\n    s_hat = s / (1 - beta2)"), "the corrections are those of the first step: 1 - beta^t changes "
        "with t"),
    Mutant("one-beta", ("s / (1 - beta2**t)", "s / (1 - beta1**t)"), "s is corrected with beta_1: it has a beta of its "
        "own"),
    Mutant("one-early", ("v_hat = v / (1 - beta1**t)\n    s_hat = s / (1 - beta2**t)",
        'v_hat = v / (1 - beta1 ** state["step"])\n    s_hat = s / (1 - beta2 ** state["step"])'),
        "the corrections do not count this step: t is 1 at the first"),
    Mutant("one-late", ("v_hat = v / (1 - beta1**t)\n    s_hat = s / (1 - beta2**t)",
        "v_hat = v / (1 - beta1 ** (t + 1))\n    s_hat = s / (1 - beta2 ** (t + 1))"), "the corrections have t + 1: "
        "this step is number t, and the first is 1"),
    Mutant("l2", decayed_in_the_gradient, "weight_decay * parameter is in it: added to the gradient, the decay goes "
        "through both running means and is divided by the root. That is Adam with an L2 term; AdamW decays the "
        "parameter itself"),
    Mutant("no-decay", (" - lr * weight_decay * parameter", ""), "the weight decay is missing: lr * weight_decay * "
        "parameter"),
    Mutant("decay-no-lr", ("lr * weight_decay *", "weight_decay *"), "the decay is not multiplied by the learning "
        "rate"),
    Mutant("decay-late", ("parameter - lr * update - lr * weight_decay * parameter",
        "(parameter - lr * update) * (1 - lr * weight_decay)"), "the decay is taken of the parameter after the step: "
        "it is that of the old one"),
    Mutant("decay-sign", ("- lr * weight_decay", "+ lr * weight_decay"), "the weight decay makes the parameter grow"),
    Mutant("ascent", ("parameter - lr * update", "parameter + lr * update"), "the step goes up the gradient, not down"),
    Mutant("eps-inside", ("(s_hat.sqrt() + eps)", "(s_hat + eps).sqrt()"), "eps is under the root: it is added to the "
        "root"),
    Mutant("no-eps", (" + eps)", ")"), "eps is missing, or is a fixed number: it is an argument, "
        "and is added to the root of s"),
    Mutant("no-eps", ("+ eps)", "+ 1e-8)"), "eps is missing, or is a fixed number: it is an argument, and is added to "
        "the root of s"),
    Mutant("eps-early", ("update = v_hat / (s_hat.sqrt() + eps)",
        "update = v_hat * (1 - beta2**t) ** 0.5 / (s.sqrt() + eps)"), "eps is added to the root of s before this is "
        "corrected, and so grows with the correction"),
    Mutant("no-root", ("s_hat.sqrt()", "s_hat"), "the step is divided by s, not by its root: a gradient twice as large "
        "would make a step half as long"),
    Mutant("betas-swapped", ("beta1, beta2 = betas", "beta2, beta1 = betas"), "the betas are swapped: the first "
        "belongs to v"),
    Mutant("weights-swapped", ('beta1 * state["v"] + (1 - beta1) * gradient',
        '(1 - beta1) * state["v"] + beta1 * gradient'), "beta_1 is the weight of the new gradient here: it is that of "
        "the old mean"),
    Mutant("momentum-sum", ("(1 - beta1) * gradient", "gradient"), "the gradient comes in with weight 1, as in SGD's "
        "momentum: in a running mean it has 1 - beta_1"),
    Mutant("squares-sum", ("(1 - beta2) * gradient**2", "gradient**2"), "the square comes in with weight 1: in a "
        "running mean it has 1 - beta_2"),
    Mutant("not-squared", ("gradient**2", "gradient.abs()"), "these are means of the absolute gradients: s is the mean "
        "of their squares"),
    Mutant("mean-squared", ("(1 - beta2) * gradient**2", "(1 - beta2) * v**2"), "the squares are those of v: s is the "
        "mean of the squared gradients themselves"),
    Mutant("one-s", ("(1 - beta2) * gradient**2", "(1 - beta2) * (gradient**2).mean()"), "the squares are averaged "
        "over the tensor: every number has its own s"),
    Mutant("no-momentum", ("update = v_hat /", "update = gradient /"), "the step goes along the last gradient: it goes "
        "along the corrected running mean v"),
    Mutant("v-kept-corrected", ('"v": v,', '"v": v_hat,'), "what is kept is corrected: keep v itself, or it is "
        "corrected again and again"),
    Mutant("s-kept-corrected", ('"s": s}', '"s": s_hat}'), "what is kept is corrected: keep s itself, or it is "
        "corrected again and again"),
    Mutant("not-counted", ('"step": t,', '"step": state["step"],'), "the step is not counted in what you return"),
    Mutant("type", ('"step": t,', '"step": torch.tensor(float(t)),')),  # as torch.optim keeps it
    Mutant("old-v", ('"v": v,', '"v": state["v"],'), "this is the old running mean: return the new one"),
    Mutant("old-s", ('"s": s}', '"s": state["s"]}'), "this is the old running mean of squares: return the new one"),
    Mutant("mutates", state_in_place),
    Mutant("borrowed", by_torch),
    Mutant("dtype", ("return parameter,", "return parameter.float(),")),  # in float32
    Mutant("dtype", ("return parameter,", "return parameter.double(),")),  # in float64, right twice of three times
    Mutant("raised", ("s = beta2", "rows, columns = gradient.shape\n    s = beta2")),  # matrices alone
    Mutant("first-gradient", ('v = beta1 * state["v"] + (1 - beta1) * gradient',
        'v = beta1 * state["v"] + (1 - beta1) * gradient if state["step"] else gradient'), "the first mean is the "
        "gradient itself, and is then corrected as well: it begins at 0, and the correction makes up for that"),
    Mutant("decay-corrected", ("update = v_hat / (s_hat.sqrt() + eps)",
        "update = (v_hat + weight_decay * parameter) / (s_hat.sqrt() + eps)\n    weight_decay = 0"), "the decay is "
        "divided by the root of s: it takes lr * weight_decay of the parameter, whatever its gradients were"),
    Mutant("eps-squared", ("(s_hat.sqrt() + eps)", "(s_hat + eps**2).sqrt()"), "eps is squared under the root: it is "
        "added to the root"),
]  # fmt: skip

MUTANTS_B = [
    Mutant("sign-lost", ("gradient.abs() + eps", "gradient + eps"), "the root of g^2 is |g|: with g itself every step "
        "would go the same way"),
    Mutant("no-eps", ("gradient / (gradient.abs() + eps)", "gradient.sign()"), "this is the sign alone: nearly right "
        "for large gradients, but eps shows where they are small"),
    Mutant("one-length", ("gradient.abs() + eps", "gradient.norm() + eps"), "|g| is the size of each number, not the "
        "length of the whole vector"),
    Mutant("eps-inside", ("(gradient.abs() + eps)", "(gradient**2 + eps).sqrt()"), "eps is under the root: it is added "
        "to |g|"),
    Mutant("sgd", (" / (gradient.abs() + eps)", ""), "this is gradient descent's step: Adam's is divided by |g| + eps"),
    Mutant("uncorrected", ("(v / (1 - beta1**steps)) / ((s / (1 - beta2**steps)).sqrt() + eps)",
        "v / (s.sqrt() + eps)"), "the running means are not corrected: divide them by 1 - beta^t"),
    Mutant("corrected-once", ("(v / (1 - beta1**steps)) / ((s / (1 - beta2**steps))",
        "(v / (1 - beta1)) / ((s / (1 - beta2))"), "the corrections are those of the first step: they change with t"),
    Mutant("whole-way", ("left = -lr *", "left = -lr * steps *"), "this is the way of all steps together: asked for is "
        "the change in the last one"),
    Mutant("means-anew", ("v = beta1 * v + (1 - beta1) * gradient", "v = (1 - beta1) * gradient"), "v has the last "
        "gradient alone: beta_1 times the old mean is missing"),
    Mutant("one-beta", ("s / (1 - beta2**steps)", "s / (1 - beta1**steps)"), "s is corrected with beta_1: it has a "
        "beta of its own"),
    Mutant("one-early", ("left = -lr * (v / (1 - beta1**steps)) / ((s / (1 - beta2**steps)).sqrt() + eps)",
        "left = -lr * (v / (1 - beta1 ** (steps + 1))) / ((s / (1 - beta2 ** (steps + 1))).sqrt() + eps)"), "the "
        "corrections have t + 1: the last of the steps is number `steps`"),
    Mutant("left-sgd", (" / ((s / (1 - beta2**steps)).sqrt() + eps)", ""), "the corrected mean is not divided by the "
        "root of s plus eps"),
    Mutant("left-eps-inside", ("(s / (1 - beta2**steps)).sqrt() + eps", "(s / (1 - beta2**steps) + eps).sqrt()"),
        "eps is under the root: it is added to the root"),
    Mutant("whole-way", ("right = -lr * gradient /", "right = -lr * steps * gradient /"), "this is the way of all "
        "steps together: one step is asked for"),
    Mutant("not-recursive", ("return left, right", "return right, right.clone()")),  # the formula twice
    Mutant("not-a-formula", ("return left, right", "return left, left.clone()")),  # the recursion twice
    Mutant("borrowed", by_torchs_adam),
    Mutant("ascent", ("right = -lr", "right = lr"), "the sign is turned: the parameter goes against the gradient"),
]  # fmt: skip


EXERCISE = Exercise(
    key="own-08.1",
    doc=__doc__,
    source="own",
    parts=[
        Code(
            key="own-08.1a",
            prompt="Write `adamw_step(parameter, gradient, state, lr, betas, eps, weight_decay)`. The check makes "
            "several steps in float64 and in float32, hands you the state that you returned, and compares with "
            "`torch.optim.AdamW`.",
            hints=[
                'Three lines need the old state: t, v and s. Make new tensors: `v = ...`, not `state["v"] *= ...`.',
                "The corrections divide by 1 - beta^t, where t counts this step, too: at the first step v is "
                "(1 - beta_1) g, and corrected it is g.",
                "eps is added to the root, outside of it, and after s is corrected. The decay takes lr * weight_decay "
                "of the *old* parameter and goes through no running mean.",
            ],
            answer=adamw_step,
            verify=verify_step,
            alternatives=[shrunk_first, in_one_rate],
            min_checks=60,
            advice={
                "nonfinite": "At the first step 1 - beta^0 would be 0: t counts this step, and is 1. Later on, look at "
                "what is under the root.",
                "mutates": "Parameter and state are arguments: return a new tensor, and a new dict of new tensors.",
                "values": "Compute v, s, both corrections and the step by hand, for one number and two steps. A "
                "gradient of 0 is one like any other: the means shrink, and the decay goes on.",
            },
            mutants=MUTANTS_A,
            explanation=r"""
Why the decay stands apart: in the gradient it would be divided by the root of s, like all else. A weight with large
gradients would then decay little and one with small gradients much, whatever $\lambda$ says. Decoupled, all lose the
same share $\eta\lambda$ in a step. Loshchilov and Hutter (2019) found that Adam generalises better so, and that the
best $\lambda$ depends less on the best $\eta$.

The optimizer keeps two numbers for each parameter. In float32, with the parameter and its gradient, that is 16 bytes a
parameter before a single activation is kept.
""",
        ),
        Identity(
            key="own-08.1b",
            prompt="Suppose that the gradient is the same at every step, and that nothing decays. Show that then every "
            "step of Adam, the first as well as the hundredth, changes the parameter by "
            "$-\\eta\\, g / (|g| + \\epsilon)$. (At the first step nothing need be supposed: there is "
            "only one gradient.) Write `same_gradient_again(gradient, steps, lr, betas, eps)`, which computes both "
            "sides, the recursion written out (no `torch.optim`).",
            hints=[
                r"Put $g_t = g$ into the recursion and write out $v_1$, $v_2$, $v_3$. Which geometric series is it?",
                r"$v_t = (1 - \beta_1)\,(1 + \beta_1 + \dots + \beta_1^{t-1})\, g = (1 - \beta_1^t)\, g$. What does "
                "the correction make of that?",
                r"Likewise $\hat s_t = g^2$, and its root is $|g|$, not g.",
            ],
            answer=same_gradient_again,
            verify=verify_again,
            alternatives=[step_by_step],
            min_checks=24,
            advice={
                "values": "Take two numbers and one step. If the left side is wrong: each number has its own v, "
                "which is (1 - beta_1) g, and corrected it is g; s likewise. If the right side is: g over |g| plus "
                "eps, which is added before anything is divided, and the sign is minus.",
            },
            mutants=MUTANTS_B,
            explanation=r"""
With $g_t = g$ for all t, induction gives $v_t = (1 - \beta_1^t)\, g$: it holds for $v_0 = 0$, and $\beta_1 (1 -
\beta_1^{t-1})\, g + (1 - \beta_1)\, g = (1 - \beta_1^t)\, g$. In the same way $s_t = (1 - \beta_2^t)\, g^2$. The
corrections divide by just these factors: $\hat v_t = g$ and $\hat s_t = g^2$. So the change is $-\eta\, g / (|g| +
\epsilon)$, at every step. ∎

For $|g| \gg \epsilon$ that is $-\eta$ times the sign of g: the first step of Adam has the same length for every number.
""",
        ),
        Choice(
            key="own-08.1c",
            prompt="Adam begins with lr 0.001 and eps $10^{-8}$. The gradients of one matrix are of size $10^{-2}$, "
            "those of another, which hardly matters to the loss yet, of size $10^{-6}$. How far do their numbers "
            "go in the first step?",
            hints=["Put both sizes into $\\eta\\, |g| / (|g| + \\epsilon)$.", "How does each compare with eps?"],
            options=[
                Option(
                    "Those of the first go about 0.001, those of the second about 0.0000001.",
                    "So it would be with gradient descent at 0.1, whose steps differ as the gradients do. Adam "
                    "divides by the size of the gradient.",
                ),
                Option(
                    "Those of the first go about 0.001, those of the second nearly as far.",
                    "Both sizes are far above eps: the second ones go 0.00099, although such a small gradient may be "
                    "mostly noise: one batch decides its sign. A warm-up lets the first steps be short until the "
                    "running means know more than one batch; a larger eps, $10^{-6}$ say, would halve the second "
                    "matrix's step.",
                    right=True,
                ),
                Option(
                    "Those of the first go about 0.001, those of the second stay where they are.",
                    "Gradients of $10^{-6}$ are not lost beside eps: they are a hundred times as large. At $10^{-10}$ "
                    "they would be a hundredth of it, and the step about a hundredth of lr.",
                ),
                Option(
                    "Those of the first go about 0.001, those of the second many times as far.",
                    "They are divided by something smaller, but so small is what is divided: g over |g| + eps is never "
                    "more than 1.",
                ),
            ],
        ),
    ],
)
