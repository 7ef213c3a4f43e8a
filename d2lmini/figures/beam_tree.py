"""Figure of chapter 16: a beam search that grows step by step, beside greedy decoding."""

import torch

from ..decoding import beam_search
from .base import Figure, table

WIDEST = 4  # beam: the columns would grow too high


class BeamTree(Figure):
    """A beam search as a tree: what each step weighed, what it kept, what ended, and which sequence won.

    A column is a step: the likeliest continuations of all hypotheses, best first, each with its log-probability so
    far. The reader chooses the width of the beam (1 is greedy decoding), goes step by step, and points at a
    continuation to see the sequence that it ends. `BeamTree.of` records a search.

    Args:
        searches: dict from the beam size to a dict: ``columns``, a list of steps, each a list of [place of the parent
            in the column before, token, log-probability of the sequence, "kept", "ended" or "pruned"], parents of the
            first step being -1; ``best``, the sequence of tokens that won; ``score``, its log-probability, over the
            length penalty if there is one.
        start: the prompt.
        beam_size: which one is shown first; None: the widest.
        shown: how many steps are shown first; None: all.
        length_penalty: that of the searches.

    Raises:
        ValueError: there is no such search or step, or a search is none.

    Source: D2L section 10.8.3.
    """

    name = "beam_tree"
    title = "A beam keeps the best few beginnings"
    hint = (
        "At the end of a search the best sequence is orange. Choose another width of the beam, go through it step by "
        "step, or choose a word to see its sequence."
    )

    def __init__(self, searches, start="<bos>", beam_size=None, shown=None, length_penalty=0.0):
        if not searches:
            raise ValueError("there is nothing to show: expected at least one search")
        beam_size = max(searches) if beam_size is None else beam_size
        if beam_size not in searches:
            raise ValueError(f"there is no search of beam size {beam_size}, only {', '.join(map(str, searches))}")
        for size, search in searches.items():
            _check(size, search)
        steps = len(searches[beam_size]["columns"])
        shown = steps if shown is None else shown
        if not 0 <= shown <= steps:
            raise ValueError(f"shown is {shown}, expected 0 to {steps}, the number of steps")
        super().__init__(
            f"Beam searches of width {', '.join(map(str, searches))}, step by step, and the sequences they find.",
            searches={str(size): search for size, search in sorted(searches.items())},
            start=str(start),
            beam_size=str(beam_size),
            step=shown,
            length_penalty=float(length_penalty),
        )

    @classmethod
    def of(cls, step, state, bos, eos, max_len, vocab, beam_sizes=(1, 2, 3, 4), length_penalty=0.0, **options):
        """Records the searches of a model, and checks that each finds what `d2lmini.beam_search` finds.

        Args:
            step, state, bos, eos, max_len: as `d2lmini.beam_search` takes them, for one example.
            vocab: names of the tokens: anything that gives a string for an integer in brackets.
            beam_sizes: from 1 to 4.
            length_penalty: as `d2lmini.beam_search` takes it.
            options: ``beam_size`` and ``shown``, as for the class.

        Returns:
            A `BeamTree`.

        Raises:
            ValueError: a beam size is not from 1 to 4, or the search scores otherwise than `d2lmini.beam_search`.
        """
        if not all(1 <= size <= WIDEST for size in beam_sizes):
            raise ValueError(f"beam sizes are {tuple(beam_sizes)}, expected numbers from 1 to {WIDEST}")
        searches = {}
        first = torch.as_tensor(bos).reshape(1)  # in case that the state holds no tensor to tell the batch from
        for size in beam_sizes:
            searched = beam_search(step, state, first, eos, max_len, size, length_penalty)
            searches[size] = _record(step, state, int(first), eos, max_len, size, length_penalty)
            if abs(searches[size]["score"] - searched.scores.item()) > 1e-3:
                raise ValueError(
                    f"the record of beam size {size} scores {searches[size]['score']:.3f}, beam_search "
                    f"{searched.scores.item():.3f}: does step change the state that it is given, has it dropout, or "
                    "are scores equal?"
                )
            _name(searches[size], vocab)
        return cls(searches, start=str(vocab[int(first)]), length_penalty=length_penalty, **options)

    def fallback(self):
        searches = self.state["searches"]
        greedy = searches.get("1", {"best": None})["best"]
        rows = [
            [size, spelled(search["best"]), f"{search['score']:.2f}", _parting(greedy, search["best"])]
            for size, search in searches.items()
        ]
        return table(
            ["beam size", "best sequence", "score", "parts with greedy at token"],
            rows,
            f"What beam searches of several widths find after “{self.state['start']}”; the score is the log-probability"
            + (" over the length penalty." if self.state["length_penalty"] else "."),
        )


def spelled(tokens):
    """Tokens as a text: where they mark the begin of a word by ▁, else with a space between them. Returns: str."""
    marked = any("▁" in token for token in tokens)
    return "".join(tokens).replace("▁", " ").strip() if marked else " ".join(tokens)


@torch.no_grad()
def _record(step, state, bos, eos, max_len, K, length_penalty):
    """A beam search hypothesis by hypothesis, with what each step weighed; tokens are integers still."""

    def penalty(length):
        return ((5 + length) / 6) ** length_penalty

    shown = max(6, 2 * K)
    live, ended, columns = [([], 0.0, state, -1)], [], []  # tokens, log-probability, state, place in the last column
    for t in range(1, max_len + 1):
        continuations = []
        for tokens, total, before, place in live:
            logits, after = step(torch.tensor([tokens[-1] if tokens else bos]), before)
            log_probs = logits[0].float().log_softmax(-1)
            for log_prob, token in zip(*log_probs.topk(min(shown, len(log_probs))), strict=True):
                continuations.append((total + log_prob.item(), place, [*tokens, token.item()], after))
        continuations.sort(key=lambda continuation: -continuation[0])
        live, column = [], []
        for rank, (total, place, tokens, after) in enumerate(continuations[:shown]):
            ends, fate = tokens[-1] == eos, "pruned"
            if ends and rank < K:
                ended.append((total / penalty(t), tokens))
                fate = "ended"
            elif not ends and rank < 2 * K and len(live) < K:
                live.append((tokens, total, after, rank))
                fate = "kept"
            column.append([place, tokens[-1], total, fate])
        columns.append(column)
        ended.sort(key=lambda pair: -pair[0])
        worst = ended[K - 1][0] if len(ended) >= K else -torch.inf
        top = ended[0][0] if ended else -torch.inf
        if not live or worst >= live[0][1] / penalty(t) or top >= live[0][1] / penalty(max_len):
            break
    else:  # cut off: what goes on competes with what has ended
        ended += [(total / penalty(max_len), tokens) for tokens, total, *_ in live]
    score, best = max(ended, key=lambda pair: pair[0])
    return {"columns": columns, "best": best, "score": score}


def _name(search, vocab):
    search["best"] = [str(vocab[token]) for token in search["best"]]
    for column in search["columns"]:
        for continuation in column:
            continuation[1] = str(vocab[continuation[1]])


def _check(size, search):
    if lacking := {"columns", "best", "score"} - set(search):
        raise ValueError(f"beam size {size} lacks {', '.join(sorted(lacking))}")
    above = 1
    for t, column in enumerate(search["columns"], start=1):
        for parent, _, _, fate in column:
            if not (-1 if t == 1 else 0) <= parent < (0 if t == 1 else above):
                expected = "-1" if t == 1 else f"0 to {above - 1}"
                raise ValueError(f"step {t} of beam size {size} has a parent {parent}, expected {expected}")
            if fate not in ("kept", "ended", "pruned"):
                raise ValueError(f"step {t} of beam size {size} says {fate!r}, expected 'kept', 'ended' or 'pruned'")
        above = len(column)
    if not search["columns"] or not 1 <= len(search["best"]) <= len(search["columns"]):
        raise ValueError(f"beam size {size} has {len(search['columns'])} steps, but its best sequence "
                         f"{len(search['best'])} tokens")  # fmt: skip


def _parting(greedy, best):
    """Counted from 1, the first token that differs; "" without a greedy search."""
    if greedy is None:
        return ""
    pairs = enumerate(zip(greedy, best, strict=False), start=1)
    return next((i for i, (a, b) in pairs if a != b), "never" if greedy == best else min(len(greedy), len(best)) + 1)
