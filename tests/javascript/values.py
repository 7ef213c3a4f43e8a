"""Values of the package that the JavaScript of figures has to give too, for `node --test tests/javascript`.

    python -m tests.javascript.values   writes values.json; `make sync` does as well

The function ``cases`` of a file of `cases/` yields (name of a function, list of its arguments, what it has to return);
both are JSON. The functions are those of the module of `d2lmini/figures/numbers` that has the file's name, or of the
module that it names in ``MODULE``. A float may differ by 1e-6, or what ``WITHIN`` says, of what is wanted and a tenth.
"""

import importlib
import json
import math
from pathlib import Path

from tools._generated import main, put

HERE = Path(__file__).parent
PATH = HERE / "values.json"


def cases_of(name):
    """Returns: dict: ``module``, a path; ``within``; ``cases``, list of dicts: ``call``, ``given``, ``want``.

    Raises:
        ValueError: a case has no JSON form (NaN, infinity), or there is none.
    """
    module = importlib.import_module(f"tests.javascript.cases.{name}")
    found = [{"call": call, "given": given, "want": want} for call, given, want in module.cases()]
    if not found:
        raise ValueError(f"cases/{name}.py has no case")
    path = getattr(module, "MODULE", f"d2lmini/figures/numbers/{name}.js")
    return {"module": path, "within": getattr(module, "WITHIN", 1e-6), "cases": found}


def source():
    """What values.json is to hold. Returns: str."""
    files = sorted(path.stem for path in (HERE / "cases").glob("[!_]*.py"))
    rows = [f"{json.dumps(name)}: {json.dumps(cases_of(name), allow_nan=False)}" for name in files]
    return "{\n" + ",\n".join(rows) + "\n}\n"


def sync(check):
    """Brings values.json to what the package gives, but for rounding. Returns: list of what was out of step."""
    text = source()
    if PATH.exists() and _same(json.loads(PATH.read_text(encoding="utf-8")), json.loads(text)):
        return []
    return put(PATH, text, check)


def _same(old, new):
    if isinstance(new, float) and isinstance(old, float):
        return math.isclose(old, new, rel_tol=1e-6, abs_tol=1e-9)  # another processor rounds otherwise
    if type(old) is not type(new):
        return False
    if isinstance(new, dict):
        return list(old) == list(new) and all(_same(old[key], new[key]) for key in new)
    if isinstance(new, list):
        return len(old) == len(new) and all(map(_same, old, new))
    return old == new


if __name__ == "__main__":
    main(sync, command="python -m tests.javascript.values")
