"""Formulas in a terminal: every hint can be read there."""

import pytest

from d2lmini.exercises.engine import registry
from d2lmini.exercises.reader.plain_math import formula, plain


@pytest.mark.parametrize(
    ("latex", "want"),
    [
        (r"\mathbf q^\top \mathbf k_i", "qᵀkᵢ"),
        (r"\mathbf p_i^\top \mathbf p_s", "pᵢᵀpₛ"),
        (r"\mathbf{p}_{s + k}", "pₛ₊ₖ"),
        (r"\tfrac12 \lVert \mathbf k_i \rVert^2", "1/2 ‖kᵢ‖²"),
        (r"\frac{a + b}{2}", "(a + b)/2"),
        (r"e^{m - m'}", "e^(m - m′)"),
        (r"\sum e^{a_i - m'}", "∑ e^(aᵢ - m′)"),
        (r"\log p_i - \log \sum_j \exp(a_j)", "log pᵢ - log ∑ⱼ exp(aⱼ)"),
        (r"\sin a\cos b", "sin a cos b"),
        (r"\bar{\mathbf k}", "k\u0304"),
        (r"\mathbf G_A = \mathbf G_C \mathbf B^\top", "G_A = G_C Bᵀ"),
        (r"y_i(\delta_{ij} - y_j)", "yᵢ(δᵢⱼ - yⱼ)"),
        (r"\mathbf a \odot \mathbf g\mapsto\Omega", "a ⊙ g ↦ Ω"),
        (r"-2w^2", "-2w²"),
        (r"w^4 + 1/(N w^D)", "w⁴ + 1/(N wᴰ)"),
        (r"\sqrt{d}\,x\_1", "√d x_1"),
        (r"\unknown x^", r"\unknown x"),
        (r"{a}} + b{", "a + b"),
    ],
)
def test_formula_reads_as_it_is_written_by_hand(latex, want):
    assert formula(latex) == want


def test_only_formulas_change():
    assert plain("`f'$HOME/$x'` costs $w^2$ and $$x_1$$, a_b") == "`f'$HOME/$x'` costs w² and x₁, a_b"


def test_nothing_of_latex_is_left_in_a_hint():
    hints = {(p.key, h) for e in registry.exercises() for p in e.parts for h in p.hints if "$" in h}
    assert len(hints) > 15
    left = {key: plain(hint) for key, hint in hints if any(mark in plain(hint) for mark in "$\\")}
    assert not left, "teach reader/plain_math.py these commands"
