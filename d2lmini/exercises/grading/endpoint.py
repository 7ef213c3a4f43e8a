"""The answer's end of a host in another process: the program that runs there, with a limit of time and memory."""

import __future__

import ast
import asyncio
import contextlib
import inspect
import json
import linecache
import math
import os
import pickle
import random
import sys

import numpy as np
import torch

from ..engine.compare import Rejected
from ..engine.host import Host, describe, load_everything
from ..engine.source import PRELUDE
from . import wire
from .silent import READERS, SILENT, nothing, silence, silence_shell

LARGEST_FILE = 2**24  # bytes


class Endpoint:
    """The answer's end: does what the judge orders, one order at a time."""

    def __init__(self):
        self.host = Host()

    def handle(self, order: bytes) -> bytes:
        """Return the bytes of ``{"result": ...}`` or of ``{"rejected": [code, message]}``."""
        try:
            name, arguments = pickle.loads(order)
            do = self._cell if name == "cell" else getattr(self.host, name)
            return wire.encode({"result": do(*arguments)})
        except Rejected as fault:
            return wire.encode({"rejected": [fault.code, fault.message]})
        except MemoryError:
            return wire.encode({"rejected": ["memory", "the result is too large for the memory of an answer"]})

    def _cell(self, key, source, imports, name, seed):
        """Run an answer cell; the result is what it calls ``name``."""
        torch.manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed % 2**32)
        return run_cell(key, source, imports, name)


def run_cell(key, source, imports, name):
    """Return what an answer cell calls ``name``.

    Args:
        key: of the part. source: of the cell. imports: import statements of the notebook, run before it.
        name: of the answer.

    Raises:
        Rejected: the cell is not Python, raises, or defines no such name.
    """
    namespace = {"__name__": "__main__", "In": [""], "Out": {}, "input": lambda *_: ""}
    namespace |= {"display": SILENT, "get_ipython": SILENT}
    exec(PRELUDE, namespace)
    namespace |= dict.fromkeys(READERS, nothing)  # who calls them in the cell learns nothing new
    if "IPython" in "\n".join([source, *imports]):
        silence_shell()
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    for statement in imports:
        with contextlib.suppress(Exception):  # an answer that misses it will say so
            (code,), flags = _compiled(statement, "<import>", flags)
            exec(code, namespace)
    filename = f"<cell {key}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    namespace.pop(name, None)
    try:
        codes, _ = _compiled(source, filename, flags)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        where = f"line {error.lineno}" if getattr(error, "lineno", None) else error
        raise Rejected("syntax", f"the answer cell is not valid Python ({where})") from None
    try:
        _run(codes, namespace)
    except BaseException as error:
        raise Rejected("raised", describe(error, None).replace("your code", "the answer cell")) from None
    if name not in namespace:
        raise Rejected("missing", f"the answer cell does not define {name}")
    return namespace[name]


def _run(codes, namespace):
    awaits = [bool(code.co_flags & inspect.CO_COROUTINE) for code in codes]

    async def run():  # all in one loop: a task may be begun by one statement and awaited by another
        for code, awaited in zip(codes, awaits, strict=True):
            result = eval(code, namespace)
            if awaited:
                await result

    if any(awaits):
        asyncio.run(run())
    else:
        for code in codes:
            exec(code, namespace)


def _compiled(source, filename, flags):
    """Return the codes of all statements, and the flags for the cells behind; IPython compiles so.

    It keeps what ``from __future__ import`` says for all that follows, and takes ``await`` outside of functions.
    """
    codes = []
    for statement in ast.parse(source, filename).body:
        codes.append(compile(ast.Module([statement], []), filename, "exec", flags, dont_inherit=True))
        flags |= codes[-1].co_flags & __future__.annotations.compiler_flag
    return codes, flags


def limit(seconds, memory):
    """Let this process take so much more processor time and memory than it has taken (where the system can)."""
    try:
        import resource
    except ImportError:
        return  # Windows has no such limits
    used = resource.getrusage(resource.RUSAGE_SELF)
    second = math.ceil(used.ru_utime + used.ru_stime + seconds)
    limits = {"RLIMIT_CPU": (second, second + 2), "RLIMIT_CORE": (0, 0), "RLIMIT_NOFILE": (128, 128)}
    limits["RLIMIT_FSIZE"] = LARGEST_FILE, LARGEST_FILE
    with contextlib.suppress(OSError), open("/proc/self/statm") as file:
        size = int(file.read().split()[0]) * resource.getpagesize() + memory
        limits["RLIMIT_AS"] = size, size
    for name, value in limits.items():
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(getattr(resource, name), value)


def serve(orders, replies):
    """Serve the judge until it sends no more; the first order holds the limits.

    Args:
        orders, replies: binary streams.
    """

    def receive():
        return wire.read_exactly(orders, int.from_bytes(wire.read_exactly(orders, 8), "little"))

    def reply(data):
        replies.write(data)
        replies.flush()

    torch.set_num_threads(1)
    silence()
    endpoint = Endpoint()
    limit(**json.loads(receive()))
    reply(wire.encode("ready"))
    while True:
        try:
            order = receive()
        except EOFError:
            os._exit(0)
        reply(endpoint.handle(order))


def main():
    """Orders come by stdin, replies go by what was stdout; stdout itself leads nowhere."""
    orders, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)
    if "heavy" in sys.argv[1:]:
        load_everything()  # it takes seconds, which are not the answer's
    serve(orders, replies)


if __name__ == "__main__":
    from d2lmini.exercises.grading import endpoint

    endpoint.main()  # not this one's: what comes by pickle speaks of the module by its name
