"""Both ends of a host in another process: `RemoteHost` for the judge, `Endpoint` beside the answer."""

import contextlib
import linecache
import pickle
import random

import numpy as np
import torch

import d2lmini

from . import wire
from .compare import Rejected
from .host import Host, describe
from .source import PRELUDE


class Endpoint:
    """The answer's end: does what the judge orders, one order at a time."""

    def __init__(self):
        self.host = Host()

    def handle(self, order: bytes) -> bytes:
        """Return the bytes of ``{"result": ...}`` or of ``{"rejected": [code, message]}``."""
        try:
            name, arguments = pickle.loads(order)
            reply = {"result": getattr(self, f"_{name}")(*arguments)}
        except Rejected as fault:
            reply = {"rejected": [fault.code, fault.message]}
        return wire.encode(reply)

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
    namespace |= dict.fromkeys(("check", "hint", "review"), _nothing)  # who calls them in the cell learns nothing new
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


class RemoteHost:
    """The judge's end.

    Args:
        exchange: sends the bytes of an order and returns (JSON, tensors) of the reply.
        module: name of the exercise's module, whose functions and classes travel by value.
    """

    def __init__(self, exchange, module=None):
        self.exchange, self.module = exchange, module

    def _order(self, name, *arguments):
        reply = wire.decode(*self.exchange(wire.pack((name, arguments), self.module)))
        if not isinstance(reply, dict):
            raise wire.WireError("the answer's process sent what is no reply")
        if "rejected" in reply:
            code, message = reply["rejected"]
            raise Rejected(str(code)[:40], str(message)[:2_000])
        return reply.get("result")

    def cell(self, key, source, imports, name, seed):
        """Run an answer cell. Returns: the answer, or a handle to it. Raises: as `run_cell`."""
        return self._order("cell", key, source, imports, name, seed)

    def adopt(self, answer):
        return answer

    def call(self, answer, args, kwargs, watches=()):
        reply = self._order("call", answer, args, kwargs, watches)
        if not isinstance(reply, dict) or not isinstance(read := reply.get("read"), list) or len(read) != len(watches):
            raise wire.WireError("the answer's process sent what is no result of a call")
        return reply.get("got"), read

    def gradient(self, got, argument, weights=None):
        if not isinstance(got, torch.Tensor) or not got.requires_grad:
            return None
        return self._order("gradient", got.live, argument, weights)

    def look(self, function, results):
        return self._order("look", function, results)


class Loopback(RemoteHost):
    """A `RemoteHost` in this process: what crosses is what would cross. For audits, since it holds nobody in."""

    def __init__(self, module=None):
        endpoint = Endpoint()
        wire.kept.clear()

        def exchange(order):
            reply = endpoint.handle(order)
            text, _ = wire.SIZES.unpack(reply[: wire.SIZES.size])
            start = wire.SIZES.size
            return reply[start : start + text], reply[start + text :]

        super().__init__(exchange, module)

    def adopt(self, answer):
        wire.kept.append(answer)
        handle = wire.LiveCallable()
        handle.number = len(wire.kept) - 1
        return handle


def load_everything():
    """Import what answers use: it takes seconds, which are not the answer's."""
    for name in d2lmini.__all__:
        with contextlib.suppress(ImportError):  # the exercises themselves are not there
            getattr(d2lmini, name)
