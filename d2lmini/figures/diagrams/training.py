"""Diagram of chapter 08: where a block joins its branch to the residual stream, and how large things are there.

Source: Xiong et al. 2020, figure 1, for the two places of the norm; Bachlechner et al. 2021 for the residual weight.
"""

from .drawing import Diagram

_FORMS = {  # what stands on the way up, beside the residual connection
    "post-norm": ("branch", "plus", "norm"),
    "pre-norm": ("norm", "branch", "plus"),
    "residual weight": ("branch", "times", "plus"),
}
_MEANS = {
    "post-norm": "the branch is added to the stream, and the sum is normed",
    "pre-norm": "a norm stands before the branch, and the stream itself is never normed",
    "residual weight": "there is no norm; the branch is multiplied by a learned number before it is added",
}


def residual_forms(sizes=None):
    """One sublayer in three forms: norm after the sum, norm before the branch, no norm but a weight.

    Args:
        sizes: None, or dict from "post-norm", "pre-norm" and "residual weight" to a pair of lists over depth: sizes of
            the stream and of the gradient in it. The first and the last number of each are written below and above.

    Returns:
        A `Diagram`.

    Raises:
        ValueError: the sizes are of other forms.
    """
    if sizes is not None and set(sizes) != set(_FORMS):
        raise ValueError(f"sizes are of {', '.join(sizes)}, expected {', '.join(_FORMS)}")
    words = [f"{form}, {meaning}" + _told(sizes, form) for form, meaning in _MEANS.items()]
    diagram = Diagram(
        "Three ways to add a branch to the residual stream",
        f"From left to right: {'; '.join(words)}. In each a residual connection leads around the branch.",
        "A branch f is attention or a feed-forward network."
        + (" Sizes: after the first block and after the last, before any training." if sizes else ""),
    )
    for (form, steps), x in zip(_FORMS.items(), (-3.0, 0, 3.0), strict=True):
        ends = {"in": 0, "out": 4.9}
        for end, row in ends.items():
            diagram.text(f"{form} {end}", (x, row), _size(sizes, form, end) or ("x_l" if end == "in" else "x at l + 1"))
        last = f"{form} in"
        for i, step in enumerate(steps):
            name, at = f"{form} {step}", (x, 1.3 + 1.1 * i)
            if step == "branch":
                diagram.box(name, at, "branch f", width=1.3, accent="blue")
            elif step == "norm":
                diagram.box(name, at, "LN", width=1.3, accent="orange")
            else:
                diagram.plus(name, at, "+" if step == "plus" else "α")
            diagram.arrow(last, name)
            last = name
        diagram.arrow(last, f"{form} out").arrow(f"{form} in", f"{form} plus", around=-1.0)
        diagram.text(f"{form} title", (x, -1.0), form)
    return diagram


def _size(sizes, form, end):
    if sizes is None:
        return ""
    stream, gradient = (values[0 if end == "in" else -1] for values in sizes[form])
    return f"stream {stream:.2f}, gradient {gradient:.2f}"


def _told(sizes, form):
    """The same for those who cannot see the drawing."""
    if sizes is None:
        return ""
    return f" (below: {_size(sizes, form, 'in')}; above: {_size(sizes, form, 'out')})"
