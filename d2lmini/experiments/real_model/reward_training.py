"""A model that sums, stopped early, and how it goes on: by rewards for right answers, or by imitating them."""

import copy
from dataclasses import replace

import torch

from d2lmini.experiments.abilities import chain_of_thought
from d2lmini.experiments.abilities.addition_exam import test_questions
from d2lmini.experiments.real_model import checked_answers as answers
from d2lmini.lab import summaries
from d2lmini.objectives import IGNORE_INDEX, group_advantages, policy_gradient_loss, token_log_probs
from d2lmini.scaling import gpt_training_flops
from d2lmini.training import WarmupLinear


class Start:
    """A model that imitated right answers until enough of its samples were right, with one seed.

    Args:
        config: of `verifiable`.
        share: of its samples that are to be right.
        seed: of weights, questions and samples.

    Raises:
        ValueError: ``config.longest`` steps were not enough.
    """

    def __init__(self, config, share, seed):
        self.config, self.seed = config, seed
        recipe = replace(
            chain_of_thought.Config(), digits=config.digits, summands=(config.summands,), longer=(),
            num_hiddens=config.num_hiddens, num_heads=config.num_heads, num_blks=config.num_blks, lr=config.lr,
            lr_matrices=config.lr_matrices,
        )  # fmt: skip
        self.sums = chain_of_thought.sums_of(recipe)
        self.tests = test_questions(self.sums, config.summands, config.tested)
        torch.manual_seed(seed)
        self.model = chain_of_thought.Adder(recipe)
        self.steps, self.flops = self._imitate_until(share)

    def _imitate_until(self, share):
        """Steps and FLOPs that were needed."""
        optimizer, flops = self.model.configure_optimizers(), 0.0
        for step in range(1, self.config.longest + 1):
            flops += self.imitate(self.model, optimizer)
            if step % self.config.look == 0:
                # of questions of the training: those of the tests choose nothing
                asked = self.questions(self.config.tested)
                right = answers.draw_group(self.model, self.sums, self.config.form, asked, 1).right
                if right.float().mean() >= share:
                    return step, flops
        raise ValueError(
            f"after {self.config.longest} steps fewer than {share:.0%} of the samples are right: raise longest, or "
            "lower the start"
        )

    def questions(self, size):
        """Summands (size, num), none of the tests'."""
        return answers.draw_questions(self.sums, self.config.summands, size, self.tests)

    def imitate(self, model, optimizer):
        """A step of learning from right answers: its FLOPs."""
        asked = self.questions(self.config.batch_size)
        questions, (right, given) = self.sums.questions(asked), self.sums.responses(asked, self.config.form)
        tokens = torch.cat([questions, right], 1)
        labels = tokens[:, 1:].clone()
        labels[:, : questions.shape[1] + given - 1] = IGNORE_INDEX
        _update(model, optimizer, model.train().loss(model(tokens[:, :-1]), labels))
        B, T = labels.shape
        return gpt_training_flops(model.config, B * T, context=T, causal=True)

    def reinforce(self, model, optimizer, contestant, seen):
        """A group of answers to each of some questions, and ``reuse`` steps of learning from their rewards: the FLOPs.

        What was drawn is added to the lists of ``seen``: ``reward``, the share ``right``, ``entropy``, ``length``, and
        ``idle``, the share of answers without advantage. These are left out of the passes, where the price of the KL
        divergence does not need them.
        """
        config = self.config
        group = answers.draw_group(model, self.sums, config.form, self.questions(config.questions), config.group)
        rewards = torch.rand(group.right.shape) < 0.5 if contestant.reward == "coin" else group.right
        advantages = group_advantages(rewards).flatten()  # (B G,)
        for name, value in (
            ("reward", rewards.float().mean().item()),
            ("right", group.right.float().mean().item()),
            ("entropy", group.entropy),
            ("length", group.valid_lens.float().mean().item()),
            ("idle", (advantages == 0).float().mean().item()),
        ):
            seen[name].append(value)
        flops = answers.drawing_flops(model.config, group)
        rows = (advantages != 0) | bool(contestant.beta)
        if not rows.any():
            return flops
        inputs, labels, reference = group.inputs[rows], group.labels[rows], None
        if contestant.beta:
            with torch.no_grad():
                reference = token_log_probs(self.model.eval()(inputs), labels)
            flops += answers.learning_flops(model.config, group, rows) / 3
        for _ in range(config.reuse):
            loss = policy_gradient_loss(
                token_log_probs(model.train()(inputs), labels),
                group.log_probs[rows],
                advantages[rows],
                labels != IGNORE_INDEX,
                clip=config.clip,
                reference=reference,
                beta=contestant.beta,
            )
            _update(model, optimizer, loss * rows.float().mean())  # the mean over all that were drawn
            flops += answers.learning_flops(model.config, group, rows)
        return flops

    def learn(self, contestant, budget=None):
        """Goes on from the start: by rewards for ``config.steps`` steps, or by imitation for ``budget`` FLOPs.

        Returns:
            the model, and a dict for JSON: ``steps``, ``flops``, ``tests``, lists of what `measure` gives before and
            after some steps, with ``step`` and ``flops``, and ``seen``, of what was drawn, in at most 100 points.
        """
        config, model = self.config, copy.deepcopy(self.model)
        torch.manual_seed(1_000 + self.seed)
        optimizer = model.configure_optimizers()
        seen = {name: [] for name in ("reward", "right", "entropy", "length", "idle")}
        if contestant.reward:
            steps, factor = round(contestant.part * config.steps), config.reward_lr
        else:
            B, T = config.batch_size, self.sums.length(config.form, config.summands) - 1
            each = gpt_training_flops(model.config, B * T, context=T, causal=True)
            steps, factor = round(contestant.part * budget / each), 1.0
        schedule = WarmupLinear(min(config.warmup, steps // 2), steps, int(config.decay * steps))
        rates = [group["lr"] * factor for group in optimizer.param_groups]
        marks = {round(steps ** (i / config.checks)) for i in range(config.checks + 1)}  # ever rarer
        flops, tests = 0.0, [{"step": 0, "flops": 0.0} | self.measure(model)]
        for step in range(1, steps + 1):
            for group, rate in zip(optimizer.param_groups, rates, strict=True):
                group["lr"] = rate * schedule(step)
            if contestant.reward:
                flops += self.reinforce(model, optimizer, contestant, seen)
            else:
                flops += self.imitate(model, optimizer)
            if step in marks:
                tests.append({"step": step, "flops": flops} | self.measure(model))
        points = {name: summaries.means(row, -(-len(row) // 100)) for name, row in seen.items() if row}
        return model, {"steps": steps, "flops": flops, "tests": summaries.columns(tests), "seen": points}

    def measure(self, model):
        """On the tests: the share ``right`` of one sample each, its ``entropy`` and ``length``, and of ``greedy``."""
        one, likeliest = (self.draw(model, self.tests, 1, temperature) for temperature in (1.0, 0))
        return {
            "right": one.right.cpu().double().mean().item(),
            "greedy": likeliest.right.cpu().double().mean().item(),
            "entropy": one.entropy,
            "length": one.valid_lens.cpu().double().mean().item(),
        }

    def draw(self, model, questions, size, temperature=1.0, seed=0):
        """A `Group`, without a change of torch's global random numbers."""
        generator = torch.Generator().manual_seed(50_000 + 100 * seed + self.seed)
        options = {"temperature": temperature, "generator": generator}
        return answers.draw_group(model, self.sums, self.config.form, questions, size, **options)


def _update(model, optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
