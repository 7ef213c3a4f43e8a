"""The answer's end of a host in another process: the program that runs there, with a limit of time and memory."""

import contextlib
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

LARGEST_FILE = 2**24  # bytes
READERS = ("check", "hint", "progress", "reset", "review")


class Endpoint:
    """The answer's end: does what the judge orders, one order at a time."""

    def __init__(self):
        self.host = Host()

    def handle(self, order: bytes) -> bytes:
        """Return the bytes of ``{"result": ...}`` or of ``{"rejected": [code, message]}``."""
        try:
            name, arguments = pickle.loads(order)
            return wire.encode({"result": getattr(self, f"_{name}")(*arguments)})
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

    def _call(self, answer, args, kwargs, watches):
        got, read = self.host.call(answer, args, kwargs, watches)
        return {"got": got, "read": read}

    def _gradient(self, number, argument, weights):
        return self.host.gradient(wire.kept[number], argument, weights)

    def _look(self, function, results):
        return self.host.look(function, results)


def run_cell(key, source, imports, name):
    """Return what an answer cell calls ``name``.

    Args:
        key: of the part. source: of the cell. imports: import statements of the notebook, run before it.
        name: of the answer.

    Raises:
        Rejected: the cell is not Python, raises, or defines no such name.
    """
    namespace = {"__name__": "answer"}
    exec(PRELUDE, namespace)
    namespace |= dict.fromkeys(READERS, _nothing)  # who calls them in the cell learns nothing new
    for statement in imports:
        with contextlib.suppress(Exception):  # an answer that misses it will say so
            exec(statement, namespace)
    filename = f"<cell {key}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    namespace.pop(name, None)
    try:
        exec(compile(source, filename, "exec"), namespace)
    except SyntaxError as error:
        raise Rejected("syntax", f"the answer cell is not valid Python (line {error.lineno})") from None
    except BaseException as error:
        raise Rejected("raised", describe(error, None).replace("your code", "the answer cell")) from None
    if name not in namespace:
        raise Rejected("missing", f"the answer cell does not define {name}")
    return namespace[name]


def _nothing(*args, **kwargs):
    return None


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
        load_everything(heavy=True)  # it takes seconds, which are not the answer's
    serve(orders, replies)


if __name__ == "__main__":
    from d2lmini.exercises.grading import endpoint

    endpoint.main()  # not this one's: what comes by pickle speaks of the module by its name
