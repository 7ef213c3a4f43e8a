"""Do the tests notice a wrong line? Seeded single changes of the package, its figures and the tools, each tested.

    python -m tools.mutation                 60 changes; writes _build/mutation.json
    python -m tools.mutation --count 10 --seed 3

Each change is made in a copy of the last commit. Tests are asked in three steps until one is red: the files of tests
that name the changed module, the tests of `make quick`, and, where a book is built, the first tier of browser tests.
A change that stays green may be one that changes nothing.
"""

import argparse
import ast
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tools._generated import ROOT

WHERE = {"package": ("d2lmini", "*.py"), "figures": ("d2lmini/figures", "*.js"), "tools": ("tools", "*.py")}
APART = re.compile(r"/built/|__init__|/experiments/|/kernels\.js|mutation\.py")
QUICK = "not browser and not book and not audit and not train and not slow and not second"
SWAPS = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.Div: "*", ast.FloorDiv: "*", ast.Mod: "+",
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is", ast.And: "or", ast.Or: "and",
}  # fmt: skip
# in JavaScript by pattern: what is found, and what comes instead
PATTERNS = {
    r" < ": " <= ",
    r" > ": " >= ",
    r" <= ": " < ",
    r" >= ": " > ",
    r" \+ ": " - ",
    r" - ": " + ",
    r" \* ": " + ",
}
PATTERNS |= {
    r" === ": " !== ",
    r" && ": " || ",
    r"\btrue\b": "false",
    r"\bfalse\b": "true",
    r"\b1\b": "2",
    r"\b0\b": "1",
}


def _between(source, left, right, new):
    """The source with the operator between two nodes replaced."""
    starts = [0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    data = source.encode()
    begin = starts[left.end_lineno - 1] + left.end_col_offset
    end = starts[right.lineno - 1] + right.col_offset
    gap = re.sub(rb"[-+*/%<>=!]+|\b(not in|in|is not|is|and|or)\b", new.encode(), data[begin:end], count=1)
    return (data[:begin] + gap + data[end:]).decode()


def python_changes(source):
    """Yields the source after each single change that `SWAPS` makes, of one operator."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.BinOp) and type(node.op) in SWAPS and not isinstance(node.left, ast.Constant):
            yield _between(source, node.left, node.right, SWAPS[type(node.op)])
        elif isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
            yield _between(source, node.left, node.comparators[0], SWAPS[type(node.ops[0])])
        elif isinstance(node, ast.BoolOp):
            yield _between(source, node.values[0], node.values[1], SWAPS[type(node.op)])


def javascript_changes(source):
    """Yields the source after each single change of `PATTERNS`, comments and imports left alone."""
    for pattern, new in PATTERNS.items():
        for found in re.finditer(pattern, source):
            line = source[source.rfind("\n", 0, found.start()) + 1 : source.find("\n", found.end())]
            if not re.match(r" *(//|\*|/\*|import )", line):
                yield source[: found.start()] + new + source[found.end() :]


def changes(seed, count):
    """So many changes, a third of each room. Returns: list of (path, source after the change)."""
    chosen, found = random.Random(seed), []
    for folder, kind in WHERE.values():
        paths = sorted(path for path in (ROOT / folder).rglob(kind) if not APART.search(str(path)))
        made = python_changes if kind == "*.py" else javascript_changes
        room = []
        while len(room) < count // len(WHERE):
            path = chosen.choice(paths)
            source = path.read_text(encoding="utf-8")
            others = [after for after in made(source) if after != source]
            if others:
                room.append((path.relative_to(ROOT), chosen.choice(others)))
        found += room
    return found


def steps(path, copy):
    """The commands that are asked one after the other, the likeliest first."""
    python, pytest = str(ROOT / ".venv/bin/python"), ["-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    stem = path.parent.name if path.stem in ("figure", "__init__") else path.stem
    if path.suffix == ".js":
        yield ["node", "tools/bundle.mjs"]
        yield ["node", "--test", "tests/javascript/"]
    files = [one for one in (copy / "tests").rglob("test_*.py") if stem in one.name + one.read_text(encoding="utf-8")]
    files.sort(key=lambda one: (stem not in one.name, one.stat().st_size))
    if files:
        yield [python, *pytest, "-n", "2", "-m", "not second", *(str(one.relative_to(copy)) for one in files[:8])]
    yield [python, *pytest, "-n", "2", "-m", QUICK, "tests"]


def noticed(path, after):
    """Makes a change in a copy and asks the tests. Returns: the command that was red, or None."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        subprocess.run(["git", "clone", "-q", str(ROOT), str(copy)], check=True)
        (copy / path).write_text(after, encoding="utf-8")
        for name in ("node_modules", "_build"):
            if (ROOT / name).exists():
                (copy / name).symlink_to(ROOT / name)
        for command in steps(path, copy):
            environment = {**os.environ, "PYTHONPATH": str(copy)}
            done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True)
            if done.returncode not in (0, 5):  # 5: no test was chosen
                return " ".join(command[-3:])
    return None


def main():
    parser = argparse.ArgumentParser(prog="python -m tools.mutation", description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    rows = []
    for path, after in changes(chosen.seed, chosen.count):
        before, start = (ROOT / path).read_text(encoding="utf-8"), time.monotonic()
        lines = [pair for pair in zip(before.splitlines(), after.splitlines(), strict=False) if pair[0] != pair[1]]
        by = noticed(path, after)
        rows.append({"path": str(path), "line": lines[0], "red": by, "seconds": round(time.monotonic() - start)})
        print(f"{'red  ' if by else 'GREEN'} {path}: {lines[0][0].strip()}  ->  {lines[0][1].strip()}", flush=True)
        (ROOT / "_build").mkdir(exist_ok=True)
        (ROOT / "_build" / "mutation.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")
    print(f"{sum(bool(row['red']) for row in rows)} of {len(rows)} changes were noticed")


if __name__ == "__main__":
    sys.exit(main())
