"""Diagram of chapter 18: from a language model to one that answers, in three stages.

Source: Ouyang et al. 2022, figure 2; Rafailov et al. 2023, figure 1; Bai et al. 2022, figure 1.
"""

from .drawing import Diagram


def alignment():
    """Pretraining, instruction tuning, reward model, RLHF: what each reads, what it minimises, what it hands on.

    Returns:
        A `Diagram`.
    """
    diagram = Diagram(
        "From pretraining to preferences",
        "Stages from the bottom up, each of which begins with the weights of the one below. Pretraining reads "
        "texts and minimises the cross-entropy of every next token. Instruction tuning reads instructions with "
        "demonstrated answers and minimises the cross-entropy of the tokens of the answers. It hands on a model that "
        "is called the reference. This one draws several answers to further instructions; a judge, people or a model, "
        "says which is better. A reward model learns from such pairs to give each answer a number. The last stage "
        "trains the model for this reward, at a price for moving away from the reference.",
        "Blue: what is trained. Orange: who judges, people (RLHF) or a model that was given rules (AI feedback). DPO "
        "has no reward model: its last stage learns from the pairs themselves.",
    )
    diagram.text("texts", (-2.9, 0), "texts").box("pretraining", (0, 0), width=2.2, accent="blue")
    diagram.arrow("texts", "pretraining", leave="right", enter="left")
    diagram.text("loss 1", (2.6, 0), "cross-entropy of each next token")
    diagram.text("answers", (-2.9, 1.6), "demonstrated answers")
    diagram.box("instruction tuning", (0, 1.6), width=2.2, accent="blue").arrow("pretraining", "instruction tuning")
    diagram.arrow("answers", "instruction tuning", leave="right", enter="left")
    diagram.text("loss 2", (2.6, 1.6), "cross-entropy of the answers")
    diagram.box("reference", (0, 3.2), "reference", width=2.2).arrow("instruction tuning", "reference")
    diagram.box("judge", (-2.9, 4.8), "judge", width=1.5, accent="orange")
    diagram.arrow("reference", "judge", "several answers", leave="left", enter="bottom", at=0.45)
    diagram.box("reward model", (-2.9, 6.4), "reward model", width=1.7, accent="blue")
    diagram.arrow("judge", "reward model", "pairs")
    diagram.box("for the reward", (0, 6.4), "training for the reward", width=2.2, accent="blue")
    diagram.arrow("reference", "for the reward")
    diagram.arrow("reward model", "for the reward", "reward", leave="right", enter="left")
    diagram.text("gain", (2.6, 6.4), "reward, less a price for moving")
    return diagram.text("policy", (0, 7.8), "a model that answers").arrow("for the reward", "policy")
