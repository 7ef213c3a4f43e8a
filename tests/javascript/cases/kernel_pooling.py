"""Weights, outputs and errors of kernel regression."""

from d2lmini.figures import KernelPooling

X, Y = [0.0, 1.0, 2.0, 4.5], [1.0, 3.0, 2.0, 7.0]


def cases():
    for kernel, width, query in (("gaussian", 0.7, 0.5), ("boxcar", 1.1, 3.2), ("epanechnikov", 2.0, 1.4)):
        figure = KernelPooling(X, Y, query=query, width=width, kernel=kernel)
        yield "poolWeights", [kernel, width, X, query], figure.weights.tolist() if figure.weights.any() else None
        state = {"kernel": kernel, "width": width, "xs": X, "ys": Y}
        yield "outputs", [state, [query, 100.0]], [figure.output, 7.0 if kernel == "gaussian" else None]
        errors = {"training": figure.training_error, "leftOut": figure.left_out_error, "alone": figure.alone}
        yield "poolErrors", [state], errors
