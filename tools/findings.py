"""What one would repeat at dinner: findings in a few sentences, whose numbers come from the records."""

from statistics import mean

from d2lmini.results import largest
from tools import course

FINDINGS = {}  # name of the experiment: number of the chapter that shows it, function from its record to a sentence
BAIT = "associative_recall", "head_roles", "scaling"  # those of the front page


def _finding(experiment, chapter):
    def keep(function):
        FINDINGS[experiment] = chapter, function
        return function

    return keep


def _percent(share):
    return f"{100 * share:.0f} %"


@_finding("associative_recall", "01")
def look_up(record):
    found, size = record["metrics"]["accuracy"], record["metrics"]["parameters"]
    return f"""
        **{size["attention"]:,} learned numbers beat {size["fully_connected"]:,}.** An attention layer with
        {size["attention"]:,} parameters looks up one of {record["config"]["num_pairs"]} new key-value pairs and is
        right in {_percent(mean(found["attention"]))} of the tests. A fully connected network with
        {size["fully_connected"]:,} is right in {_percent(mean(found["fully_connected"]))}; guessing gives
        {100 * found["chance"]:g} %."""


@_finding("translation_bahdanau", "04")
def translator(record):
    bleu, longest = record["metrics"]["bleu"], record["metrics"]["bleu_longest"]
    return f"""
        **Looking back lifts a translator from {bleu["plain"]:.0f} to {bleu["attention"]:.0f} BLEU.** That is on
        English and French sentences from a small grammar; without attention, one vector must hold the whole
        sentence. On the longest sentences it is {longest["plain"]:.0f} against {longest["attention"]:.0f}."""


@_finding("head_roles", "05")
def head(record):
    seeds = record["metrics"]["seeds"].values()
    best = [max(of["word to write"] for name, of in seed["mass"].items() if name.startswith("cross")) for seed in seeds]
    even = mean(seed["even_mass"]["cross"]["word to write"] for seed in seeds)
    return f"""
        **A head finds the translation of a word, unasked.** A translator is never told which words belong together.
        On new sentences, in each of {len(best)} training runs, one of its heads still puts at least
        {int(100 * min(best))} % of its attention on the source of the word to write next. Spread evenly, it would
        be {_percent(even)}."""


@_finding("tokenizer_comparison", "12")
def tokens(record):
    ratio = record["metrics"]["transfer"]["debian.en"]["debian.ja"]
    return f"""
        **A Japanese manual costs {ratio:.1f} times the tokens** if the vocabulary was learned from its English
        edition and not from itself."""


@_finding("bert_sentiment", "13")
def pretrained(record):
    found, few = record["metrics"]["contestants"], record["metrics"]["shares"]["1 %"]
    whole, part = ({name: _percent(of[share]["mean"]) for name, of in found.items()} for share in ("100 %", "1 %"))
    return f"""
        **Pretraining is worth more when labels are few.** With {few} labelled sentences of film reviews, fine-tuned
        MiniLM classifies {part["minilm"]} of the test sentences correctly and a bag of words {part["bag"]}; with
        {record["metrics"]["shares"]["100 %"]:,} it is {whole["minilm"]} against {whole["bag"]}."""


@_finding("induction", "15")
def copying(record):
    looks = record["metrics"]["models"]["two blocks"]["look"]
    first, again = (mean(look["off_in_order"][0][half] for look in looks) for half in (0, 1))
    without = mean(max(second for block in look["off"] for _, second in block) for look in looks)
    return f"""
        **Switch off one head and a small GPT copies badly.** It reads {record["config"]["period"]} random tokens
        twice. The loss is {first:.1f} nats a token the first time and {again:.1f} the second time; there, without the
        head that matters most, it is {without:.1f}, the mean of {len(looks)} models."""


@_finding("scaling", "17")
def foretold(record):
    metrics = record["metrics"]
    law, had = metrics["prediction"]["losses"]["joint"], metrics["held_back"]["loss"]
    return f"""
        **A loss predicted before training.** {len(metrics["runs"])} small GPTs predicted a loss of {law["loss"]:.3f}
        for a GPT larger than all of them. Trained, it had {had:.3f}: off by
        {100 * abs(law["loss"] / had - 1):.1f} %, while two straight lines came nearer."""


@_finding("instruct", "18")
def flattery(record):
    (run,) = record["metrics"]["runs"]
    ways = [of["measured"] for name, of in run["preferred"].items() if name.startswith("flattered")]
    after, before = max(ways, key=lambda of: of["flattered"]), run["instructed"]
    return f"""
        **A judge that likes flattery gets flattery.** In the worst of {len(ways)} settings, a small GPT trained to
        please it scores {after["flattered"]:.2f} instead of {before["flattered"]:.2f}. Its likeness to the right answer
        falls from {before["honest"]:.2f} to {after["honest"]:.2f}; answers right after at most one courtesy fall from
        {_percent(before["followed"])} to {_percent(after["followed"])}."""


def sentences(experiments=None):
    """Markdown: a list of findings, each with the chapter that shows it; all of them, or those of some experiments."""
    lines = []
    for experiment in experiments or FINDINGS:
        chapter, say = FINDINGS[experiment]
        said = " ".join(say(*largest(experiment)).split())
        lines.append(f"- {said} [Chapter {chapter}](chapters/{course.NAMES[chapter]}.ipynb)")
    return "\n".join(lines)
