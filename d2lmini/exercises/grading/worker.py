"""Judge the answers of one notebook. Started by ``grading`` in a process of its own.

The order comes as JSON on stdin: ``answers`` (key -> source), ``imports``, ``seconds`` (for one answer, or
null), ``memory`` (bytes that answers may allocate) and ``nonce``. Reports go to what was stdout at the start,
one JSON object a line, each with the nonce; stdout itself then leads nowhere, so prints count for nothing.
"""

import contextlib
import json
import linecache
import os
import sys

from ..engine.judge import TIMEOUT, WRONG, judge, warm_up
from ..engine.limits import TimeUp, call_limited
from ..engine.registry import find
from ..engine.trial import describe


def limit_memory(allowance):
    """Let this process map ``allowance`` bytes more than it has now (where the system can)."""
    try:
        import resource

        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + allowance, used + allowance))
    except (ImportError, OSError, ValueError):
        pass  # macOS and Windows have no such limit; the time limit still holds


def run_cell(key, source, statements, namespace, seconds):
    """Return the verdict on one answer cell as (status, code, message)."""
    try:
        _, part = find(key)
    except KeyError as error:
        return WRONG, "unknown", error.args[0]
    for statement in statements:
        try:
            exec(statement, namespace)
        except Exception:  # an answer that misses it will say so
            continue
    filename = f"<cell {key}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    namespace.pop(part.name, None)
    try:
        call_limited(lambda: exec(compile(source, filename, "exec"), namespace), seconds or part.seconds)
    except TimeUp:
        return TIMEOUT, "timeout", "the answer cell itself does not end"
    except SyntaxError as error:
        return WRONG, "syntax", f"the answer cell is not valid Python (line {error.lineno})"
    except (Exception, SystemExit) as error:
        return WRONG, "raised", describe(error, None).replace("your code", "the answer cell")
    if part.name not in namespace:
        return WRONG, "missing", f"the answer cell does not define {part.name}"
    verdict = judge(part, namespace[part.name], seconds=seconds)
    return verdict.status, verdict.code, verdict.message


def main():
    order = json.loads(sys.stdin.read())

    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)

    def report(**line):
        channel.write(json.dumps({"nonce": order["nonce"], **line}) + "\n")
        channel.flush()

    for key in order["answers"]:  # before any clock starts
        with contextlib.suppress(KeyError):
            warm_up(find(key)[1])
    report(ready=True)
    limit_memory(order["memory"])
    namespace = {"__name__": "answer"}
    for key, source in order["answers"].items():
        report(started=key)
        try:
            status, code, message = run_cell(key, source, order["imports"], namespace, order["seconds"])
        except BaseException as error:  # a learner's thread or exception hook can put anything here
            status, code, message = "wrong", "raised", f"the answer raises {type(error).__name__}"
        report(key=key, status=status, code=code, message=message)
    os._exit(0)  # not by way of exit handlers that an answer may have left


if __name__ == "__main__":
    main()
