"""Side by side with peers: each script writes a JSON into d2lmini/results/, of which a page is made."""

import d2lmini  # noqa: F401  before torch: it says how threads wait

SUITE = ("attention", "training", "translation", "decoding", "cost")  # what `make bench` runs
ON_GPU = (*SUITE, "utilization")
# these need a GPU, a built book, a sandbox, Chromium and weights, and what `benchmarks/_onnx.py` fetches
OTHERS = ("utilization", "book", "grading", "live", "live_peers", "learning", "challenges", "real_model", "pages")
