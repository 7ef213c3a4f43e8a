"""Figure of chapter 16: which scores a causal model computes token by token, with and without a key-value cache."""

from .base import Figure, table

LONGEST = 12  # rows of the grid


class CacheWalk(Figure):
    """Generation step by step: a grid of scores, a row for each query and a column for each key.

    First the prompt is read in one pass, then each new token goes in by itself. The reader sees which scores are
    computed now, which were computed before, which the causal mask forbids, and where keys and values come from; with
    the cache or without it, when all tokens go in again. What both cost is counted for a model of given size.

    Args:
        tokens: the prompt and what was generated after it, 3 to 13 words; the last one does not go in again.
        prompt: how many of them are the prompt, from 1.
        config: of a model: anything with ``num_blks``, ``num_heads`` and ``num_hiddens``, such as `GPTConfig`.
        step: which one is shown first: 0 is the pass over the prompt.
        cache: whether the cache is on at first.

    Raises:
        TypeError: the config names no sizes.
        ValueError: too many or too few tokens, no such step, or heads that do not divide the hidden units.

    Source: D2L section 11.7.5; UDL section 12.7.3.
    """

    name = "cache_walk"
    title = "The cache, step by step"
    hint = "Generate token by token with the buttons or the slider; then switch the cache off and compare the counts."

    def __init__(self, tokens, prompt, config, step=0, cache=True):
        tokens = list(map(str, tokens))
        try:
            sizes = {key: int(getattr(config, key)) for key in ("num_blks", "num_heads", "num_hiddens")}
        except AttributeError as error:
            raise TypeError(
                f"{type(config).__name__} has no {error.name}: expected a config with num_blks, num_heads, num_hiddens"
            ) from error
        if min(sizes.values()) < 1 or sizes["num_hiddens"] % sizes["num_heads"]:
            raise ValueError(
                f"the model has {sizes}: expected positive numbers, and heads that divide the hidden units"
            )
        if not 3 <= len(tokens) <= LONGEST + 1:
            raise ValueError(f"there are {len(tokens)} tokens, expected 3 to {LONGEST + 1}")
        if not 1 <= prompt <= len(tokens) - 1:
            raise ValueError(f"the prompt has {prompt} of {len(tokens)} tokens, expected 1 to {len(tokens) - 1}")
        if not 0 <= step < len(tokens) - prompt:
            raise ValueError(f"step is {step}, expected 0 to {len(tokens) - prompt - 1}")
        super().__init__(
            f"The scores of {len(tokens) - 1} tokens, computed step by step with and without a cache.",
            tokens=tokens,
            prompt=prompt,
            num_blks=sizes["num_blks"],
            num_heads=sizes["num_heads"],
            head_size=sizes["num_hiddens"] // sizes["num_heads"],
            step=step,
            cache=bool(cache),
        )

    def counts(self, step, cache):
        """What the page counts.

        Args:
            step: from 0.
            cache: whether there is one.

        Returns:
            dict of integers: ``tokens`` that go through the layers in this step, ``scores`` that are computed in it
            (products of a query and a key, over all layers and heads), ``kept``, the numbers that are kept
            for the next step, and ``tokens_so_far`` and ``scores_so_far``, in all steps up to this one.
        """
        state = self.state
        heads = state["num_blks"] * state["num_heads"]
        length, fresh = state["prompt"] + step, 1 if cache and step else state["prompt"] + step
        before = self.counts(step - 1, cache) if step else {"tokens_so_far": 0, "scores_so_far": 0}
        # query t has t + 1 keys: all queries up to this length, less those that were there before
        scores = heads * (length * (length + 1) - (length - fresh) * (length - fresh + 1)) // 2
        return {
            "tokens": fresh,
            "scores": scores,
            "kept": 2 * heads * state["head_size"] * length if cache else 0,
            "tokens_so_far": before["tokens_so_far"] + fresh,
            "scores_so_far": before["scores_so_far"] + scores,
        }

    def fallback(self):
        state = self.state
        rows = []
        for step in range(len(state["tokens"]) - state["prompt"]):
            new, all_again = self.counts(step, True), self.counts(step, False)
            goes_in = (
                state["tokens"][state["prompt"] + step - 1] if step else " ".join(state["tokens"][: state["prompt"]])
            )
            rows.append(
                [step, goes_in, *(f"{c[key]:,}" for key in ("tokens", "scores", "kept") for c in (new, all_again))]
            )
        header = ["step", "goes in", *(f"{what}, {how} cache" for what in ("tokens that go in", "scores computed",
                  "numbers kept") for how in ("with", "without"))]  # fmt: skip
        return table(header, rows, f"A model of {_sizes(state)} generates token by token.")


def _sizes(state):
    return f"{state['num_blks']} layers with {state['num_heads']} heads of {state['head_size']}"
