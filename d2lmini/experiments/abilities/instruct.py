"""Chapter 18: a small GPT learns to follow instructions, then what a judge likes; and what it does to a bad judge.

It is pretrained on sentences of a grammar with their translations, fine-tuned on instructions with demonstrated
answers (only answers are counted), and draws several answers to further instructions. Of these a judge chooses: the
best of n, with no training; or the best and the worst of each prompt as a pair, for direct preference optimisation
(DPO), and the best ones alone to be imitated. The judge is honest (how near to the right answer), or can be flattered:
it adds a bonus for each courtesy. All steps are measured on the same unseen instructions, of patterns unseen.

Source: Ouyang et al. 2022 and Stiennon et al. 2020 for the steps, Rafailov et al. 2023 for DPO, Gao et al. 2023 for
what becomes of a reward that is optimised too far.
"""

import random
from dataclasses import dataclass, replace

import torch

from d2lmini.experiments.abilities import fresh_data
from d2lmini.experiments.abilities import instructions as rules
from d2lmini.experiments.abilities.judgements import best_of, draw_answers, judged, log_probs, measure
from d2lmini.experiments.gpt import language
from d2lmini.experiments.gpt.language import Recipe
from d2lmini.lab import summaries
from d2lmini.lab.parts import Parts
from d2lmini.models.gpt_config import GPT_CONFIGS
from d2lmini.objectives.preferences import (
    answer_batch,
    check_preferences,
    dpo_loss,
    preference_pairs,
    sequence_log_probs,
)
from d2lmini.training import Module

IMITATED = "chosen alone"


@dataclass(frozen=True)
class Config(Recipe):
    """Settings beside those of the pretraining's recipe.

    ``forms`` of instructions are about sentences of up to ``max_words`` words, of which ``num_pairs`` are there to
    pretrain. ``demonstrations`` teach for ``tuning_steps``, by the same recipe; ``politeness`` is the probability of
    each courtesy in them. Of ``judged`` further instructions ``answers`` each are drawn, of ``answer_len`` tokens at
    most, for pairs. DPO takes ``dpo_steps`` with ``dpo_batch`` pairs a step for each of ``judges`` and of ``betas``; it
    is measured ``dpo_checks`` times. ``tested`` instructions measure each step by one answer each, and the best of n by
    as many as the largest of ``best_of``; ``bonus`` is what a courtesy adds for the flattered judge.
    """

    forms: tuple = tuple(rules.INSTRUCTIONS)
    num_pairs: int = 12_000
    max_words: int = 9
    demonstrations: int = 12_000
    politeness: float = 0.25
    tuning_steps: int = 2_500
    judged: int = 1_500
    answers: int = 8
    answer_len: int = 24
    dpo_steps: int = 240
    dpo_checks: int = 5
    dpo_batch: int = 32
    dpo_lr: float = 1e-4
    judges: tuple = ("honest", "flattered")
    betas: tuple = (0.03, 0.3, 3.0)
    bonus: float = 0.2
    tested: int = 400
    best_of: tuple = (1, 2, 4, 8, 16, 32)
    shown: int = 6
    seeds: tuple = (0,)


_LAPTOP = Config(
    model=replace(GPT_CONFIGS["modern"], max_len=64, num_hiddens=128, num_heads=4, num_blks=4, dropout=0.0),
    batch_size=32, steps=1_500, checks=4, val_batches=10, precision="bf16",
)  # fmt: skip

PRESETS = {
    "smoke": replace(
        _LAPTOP, model=replace(_LAPTOP.model, num_hiddens=16, num_heads=2, num_blks=1), batch_size=4, steps=6, checks=2,
        precision="float32", val_batches=2, num_pairs=1_000, forms=("count", "repeat"), demonstrations=40,
        tuning_steps=40, judged=12, answers=4, answer_len=6, dpo_steps=4, dpo_checks=2, dpo_batch=4, betas=(0.1, 1.0),
        tested=12, best_of=(1, 2, 3), shown=2,
    ),
    # short answers, which are soon learned
    "cpu": replace(
        _LAPTOP, model=replace(_LAPTOP.model, max_len=40, num_hiddens=64, num_blks=2), steps=150, checks=2,
        precision="float32", forms=("repeat", "who", "count"), num_pairs=6_000, max_words=7, demonstrations=6_000,
        tuning_steps=600, judged=400, answers=6, answer_len=14, dpo_steps=45, dpo_checks=3,
        betas=(0.1, 1.0), tested=150, best_of=(1, 2, 4, 8, 16),
    ),
    "laptop": _LAPTOP,
    "full": replace(
        _LAPTOP, model=replace(_LAPTOP.model, num_hiddens=256, num_heads=8, num_blks=6), batch_size=64, steps=8_000,
        num_pairs=48_000, demonstrations=60_000, tuning_steps=8_000, judged=6_000, answers=16, dpo_steps=1_000,
        dpo_batch=64, betas=(0.03, 0.1, 0.3, 1.0, 3.0),
        tested=1_000, best_of=(1, 2, 4, 8, 16, 32, 64), seeds=(0, 1, 2),
    ),
}  # fmt: skip


class Preferring(Module):
    """A policy that learns from pairs: the first half of a batch are chosen answers, the second the rejected ones.

    ``beta`` None: the chosen ones are imitated, the rejected ones are not used.
    """

    def __init__(self, policy, beta, lr):
        super().__init__()
        self.policy, self.beta, self.lr = policy, beta, lr

    def forward(self, inputs, labels):
        """Log-probabilities of answers: (2B, T) twice to (2B,)."""
        return sequence_log_probs(self.policy(inputs), labels)

    def loss(self, Y_hat, Y):
        """Y_hat (2B,) under the policy, Y (2B,) under the reference."""
        chosen, rejected = Y_hat.chunk(2)
        return -chosen.mean() if self.beta is None else dpo_loss(chosen, rejected, *Y.chunk(2), self.beta)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.lr, betas=(0.9, 0.95), weight_decay=0.0)


def check(config):
    """Raises ValueError where a setting would be found wrong only after the training."""
    if not config.judges or set(config.judges) - rules.JUDGES.keys():
        raise ValueError(f"judges are {config.judges}, expected some of {', '.join(rules.JUDGES)}")
    if not config.best_of or min(config.best_of) < 1:
        raise ValueError(
            f"best_of is {config.best_of}, expected numbers from 1: of how many answers is the best taken?"
        )
    if not config.betas or not min(config.betas) > 0:
        raise ValueError(f"betas are {config.betas}, expected numbers above 0")
    if config.answers < 2:
        raise ValueError(f"answers is {config.answers}, expected at least 2: a pair is of two answers to a prompt")


class Run:
    """The models of a run with one seed; one that was trained in a part before comes from its checkpoint."""

    def __init__(self, config, device, parts, seed):
        self.config, self.device, self.parts, self.seed = config, device, parts, seed
        self.tokens, *texts = rules.corpus(config.num_pairs)
        self.texts = [torch.tensor(text, dtype=torch.int32) for text in texts]
        self.recipe = replace(config, model=replace(config.model, vocab_size=len(self.tokens)))
        self.tests = rules.examples(config.tested, "test", config.forms, config.max_words)
        # what is judged is not what was demonstrated
        made = rules.examples(config.demonstrations + config.judged, "train", config.forms, config.max_words)
        self.demonstrated, self.asked = made[: config.demonstrations], made[config.demonstrations :]
        longest = 1 + max(len(example.prompt) for example in (*made, *self.tests))  # <bos>
        if longest + config.answer_len > config.model.max_len:
            raise ValueError(
                f"a prompt of {longest} tokens and an answer of {config.answer_len} tokens do not fit into the context "
                f"of {config.model.max_len} (max_len): lower answer_len or max_words"
            )
        self.made, self.drawn = {}, {}

    def name(self, what):
        return f"{what}, seed {self.seed}"

    def pretrained(self):
        """A GPT that has read the grammar, and its history."""
        if "pretrained" not in self.made:
            name = self.name("pretrained")
            self.made["pretrained"] = language.train(
                self.recipe, *self.texts, self.device, self.seed, self.parts, name, say=None
            )
        return self.made["pretrained"]

    def fresh(self, weights):
        """A GPT with the weights of another one."""
        model = language.Learner(self.recipe)
        model.load_state_dict(weights.state_dict())
        return model.to(self.device)

    def instructed(self):
        """The same, fine-tuned on demonstrations, and its history."""
        if "instructed" not in self.made:
            config, tokens, generator = self.config, self.tokens, random.Random(f"polite/{self.seed}")
            prompts = [tokens.prompt(example) for example in self.demonstrated]
            answers = [
                tokens.answer(rules.polite(example.answer, config.politeness, generator))
                for example in self.demonstrated
            ]

            def draw(size):
                places = torch.randint(len(prompts), (size,)).tolist()
                return answer_batch([prompts[i] for i in places], [answers[i] for i in places])

            model = self.fresh(self.pretrained()[0])
            plan = replace(config, steps=config.tuning_steps)
            history = self.fit(model, draw, plan, "instructed")
            self.made["instructed"] = model.eval(), history
        return self.made["instructed"]

    def fit(self, model, draw, plan, what, after_check=None):
        torch.manual_seed(self.seed)
        return fresh_data.fit(model, draw, plan, self.device, self.seed, self.parts, self.name(what), after_check)

    def pairs(self, judge):
        """Pairs of answers of the instructed model, by a judge, and their log-probabilities under it."""
        if judge not in self.drawn:
            reference, prompts = self.instructed()[0], [self.tokens.prompt(example) for example in self.asked]
            if "answers" not in self.drawn:
                self.drawn["answers"] = draw_answers(
                    reference, prompts, self.config.answers, self.tokens, self.config, 30_000 + self.seed
                )
            answers = self.drawn["answers"]
            rewards = judged(self.tokens, self.asked, answers, self.config)[judge]
            pairs = preference_pairs(prompts, answers, rewards)
            check_preferences(pairs, len(self.tokens))
            scores = [
                log_probs(reference, [pair.prompt for pair in pairs], [getattr(pair, which) for pair in pairs])
                for which in ("chosen", "rejected")
            ]
            self.drawn[judge] = pairs, *scores
        return self.drawn[judge]

    def preferred(self, judge, beta, what):
        """Trains by a judge's pairs: a dict for JSON. ``beta`` None: the chosen answers are imitated."""
        config, reference = self.config, self.instructed()[0]
        pairs, chosen, rejected = self.pairs(judge)
        model = Preferring(self.fresh(reference), beta, config.dpo_lr)

        def draw(size):
            places = torch.randint(len(pairs), (size,)).tolist()
            some = [pairs[i] for i in places]
            answers = [pair.chosen for pair in some] + [pair.rejected for pair in some]
            inputs, labels = answer_batch([pair.prompt for pair in some] * 2, answers)
            return inputs, labels, torch.cat([chosen[places], rejected[places]])

        def check(trainer):
            return {"measured": measure(model.policy, reference, self.tokens, self.tests, config)}

        plan = replace(config, steps=config.dpo_steps, checks=config.dpo_checks, batch_size=config.dpo_batch)
        history = self.fit(model, draw, plan, what, check)
        path, each = history["measured"], len(history["step"]) // len(history["measured"])
        numbers = ("followed", "honest", "flattered", "words", "kl")
        return {
            "pairs": len(pairs),
            "train_s": round(history["seconds"][-1], 3),
            "measured": path[-1],
            "path": {"step": [each * (i + 1) for i in range(len(path))]}
            | {name: [measured[name] for measured in path] for name in numbers},
            "curves": summaries.curves(history),
        }


def run(config, device, parts=None):
    """Pretrains, fine-tunes, and learns from each judge; see `d2lmini.lab` for the arguments.

    Returns:
        dict with ``metrics`` and ``curves``. Of the metrics ``runs``, one of each seed, have ``pretrained`` and
        ``instructed`` as `measure` tells, ``best_of`` as `best_of`, and ``preferred``: of each judge and beta ("honest,
        beta 0.1") and of `IMITATED` ``pairs``, ``measured`` at the end and ``path``, the same numbers over the steps.

    Raises:
        ValueError: see `check`; a form is unknown, answers do not fit into the context, or a judge likes all answers to
            each prompt alike.
    """
    check(config)
    parts, runs, curves = parts or Parts(), [], {}
    for seed in config.seeds:
        seed_run = Run(config, device, parts, seed)

        def first(what, seed_run=seed_run):
            model, history = getattr(seed_run, what)()
            reference = None if what == "pretrained" else seed_run.pretrained()[0]
            record = measure(model, reference, seed_run.tokens, seed_run.tests, config)
            record |= {"parameters": model.num_parameters, "train_s": round(history["seconds"][-1], 3)}
            return record | {"curves": summaries.curves(history)}

        results = {what: parts(seed_run.name(what), first, what) for what in ("pretrained", "instructed")}
        results["best_of"] = parts(
            seed_run.name("best of"),
            lambda seed_run=seed_run: best_of(seed_run.instructed()[0], seed_run.tokens, seed_run.tests, config),
        )
        methods = {IMITATED: (config.judges[0], None)}
        methods |= {f"{judge}, beta {beta:g}": (judge, beta) for judge in config.judges for beta in config.betas}
        results["preferred"] = {
            method: parts(seed_run.name(method), seed_run.preferred, judge, beta, method)
            for method, (judge, beta) in methods.items()
        }
        for method, record in {**{k: results[k] for k in ("pretrained", "instructed")}, **results["preferred"]}.items():
            curves[seed_run.name(method)] = record.pop("curves")
        runs.append(results)
    metrics = {"runs": runs, "headline": headline(runs[0], config)}
    return {"metrics": metrics, "curves": curves}


def headline(results, config):
    """What each step makes of the instructions followed, and the flattered judge of them, in a sentence."""
    judge = config.judges[0]
    shares = [f"{results[what]['followed']:.0%} {what}" for what in ("pretrained", "instructed")]
    shares.append(f"{results['best_of'][judge]['followed'][-1]:.0%} the best of {config.best_of[-1]}")
    text = ""
    for judge in config.judges:
        methods = {
            method: record["measured"]
            for method, record in results["preferred"].items()
            if method.startswith(f"{judge}, ")
        }
        method = max(methods, key=lambda method: methods[method][judge])
        if judge == config.judges[0]:
            shares.append(f"{methods[method]['followed']:.0%} DPO ({method})")
        else:
            text += (
                f"; DPO for the {judge} judge ({method}) lifts its reward from {results['instructed'][judge]:.2f} to "
                f"{methods[method][judge]:.2f} and leaves {methods[method]['followed']:.0%} followed"
            )
    return f"instructions followed: {', '.join(shares)}{text}"
