"""All benchmarks, one after the other, each in a process of its own: `python -m benchmarks`, or `make bench`."""

import subprocess
import sys

import torch

CPU = "attention", "training", "translation", "decoding", "growth"
GPU = ("utilization",)


def main():
    left = []
    for name in (*CPU, *(GPU if torch.cuda.is_available() else ())):
        print(f"python -m benchmarks.{name}", flush=True)
        if subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=False).returncode:
            left.append(name)
    if not torch.cuda.is_available():
        print("not measured, as there is no CUDA GPU here:", ", ".join(GPU))
    if left:
        sys.exit(f"these ended with an error: {', '.join(left)}")
    print("python -m tools.sync puts what was measured into README.md and the book")


if __name__ == "__main__":
    main()
