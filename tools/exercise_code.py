"""The code in the documents of exercises: linted and formatted like all other.

    python -m tools.exercise_code [--fix] [FILE ...]    # --fix: write it in the project's format

What Ruff finds is told with the document's name and line.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from d2lmini.exercises.engine import registry
from d2lmini.exercises.engine.document import take_apart
from d2lmini.exercises.engine.source import PRELUDE
from tools._generated import ROOT

# every part has a `verify` and its own imports, and each may use what the parts above it define
UNASKED = ("F811", "E402")


def lint(paths):
    """What Ruff finds in documents. Returns: list of str."""
    names = "; ".join(line for line in PRELUDE.splitlines() if line)
    with tempfile.TemporaryDirectory() as folder:
        for path in paths:
            code = take_apart(path).code  # its first line is the title's
            (Path(folder) / f"{path.stem}.py").write_text(f"{names}  # noqa{code}", encoding="utf-8")
        found = _ruff("check", "--quiet", f"--ignore={','.join(UNASKED)}", "--output-format=concise", folder)
        for path in paths:
            found = found.replace(str((Path(folder) / f"{path.stem}.py").resolve()), str(path))
    return [line for line in found.splitlines() if line.strip()]


def formatted(paths):
    """Returns: dict from each document to its text with the code in the project's format."""
    texts = {path: path.read_text(encoding="utf-8").splitlines() for path in paths}
    blocks = [(path, block) for path in paths for part in take_apart(path).parts for block in part.code]
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{number}.py" for number in range(len(blocks))]
        for file, (_, block) in zip(files, blocks, strict=True):
            file.write_text(block.text, encoding="utf-8")
        _ruff("format", "--quiet", folder)
        # from the last one on, so that the lines of those above keep their numbers
        for file, (path, block) in sorted(zip(files, blocks, strict=True), key=lambda pair: -pair[1][1].line):
            end = block.line + block.text.count("\n")
            texts[path][block.line : end] = file.read_text(encoding="utf-8").splitlines()
    return {path: "\n".join(lines) + "\n" for path, lines in texts.items()}


def _ruff(task, *arguments):
    command = [sys.executable, "-m", "ruff", task, "--config", str(ROOT / "pyproject.toml"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.stderr.strip():
        raise RuntimeError(f"Ruff: {done.stderr.strip()}")
    return done.stdout


def main():
    parser = argparse.ArgumentParser(description="lint and format the code in the documents of exercises")
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="documents; none: all")
    parser.add_argument("--fix", action="store_true", help="write it in the project's format")
    options = parser.parse_args()
    files = options.files or list(map(registry.path, registry.keys()))
    found = lint(files)
    for path, text in formatted(files).items():
        if text != path.read_text(encoding="utf-8"):
            if options.fix:
                path.write_text(text, encoding="utf-8")
            else:
                found.append(f"{path}: its code is not in the project's format: python -m tools.exercise_code --fix")
    print("\n".join(found) or "the code in the documents of exercises is in order")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
