"""`python -m benchmarks` lists the suite; with names, or ``all``, it runs them one by one."""

import argparse
import json
import subprocess
import sys
from importlib import import_module

from benchmarks import ON_GPU, OTHERS, SUITE
from d2lmini import results


def overview():
    """A line for each benchmark: when it was recorded, on what, how long it took, and what it is about."""
    lines = []
    for name in (*SUITE, *OTHERS):
        found = []
        for path in (results.FOLDER / f"benchmark_{name}.json", results.FOLDER / f"benchmark_{name}_cuda.json"):
            if path.is_file():
                record = json.loads(path.read_text(encoding="utf-8"))
                took = f", {record['wall_s'] / 60:.1f} min" if "wall_s" in record else ""
                found.append(f"{record['date'][:10]} on {record['device']['name']}{took}")
        about = import_module(f"benchmarks.{name}").__doc__.strip().split("\n")[0]
        lines.append(f"{name:13}{'; '.join(found) or 'not recorded'}\n{'':13}{about}")
    lines.append(
        "figure_start is run by itself: it compares built books, `python -m benchmarks.figure_start new=_build/html`"
    )
    return "\n".join(lines)


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"all, or some of {', '.join((*SUITE, *OTHERS))}; none: a list")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see whether they run")
    parser.add_argument("--out", help="folder of the records")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    options = parser.parse_args(arguments)
    if not options.names:
        return print(overview())
    known = (*SUITE, *OTHERS)
    names = (ON_GPU if options.device != "cpu" else SUITE) if options.names == ["all"] else options.names
    strangers = [name for name in names if name not in known]
    if strangers:
        parser.error(f"there is no benchmark {', '.join(strangers)}, only {', '.join(known)}, and all")
    words = [*(["--quick"] if options.quick else []), *(["--out", options.out] if options.out else [])]
    failed = []
    for name in names:
        print(name, flush=True)
        device = ["--device", options.device] if name in ON_GPU else []
        if subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *words, *device]).returncode:
            failed.append(name)
    if failed:
        sys.exit(f"not measured: {', '.join(failed)}")


if __name__ == "__main__":
    main()
