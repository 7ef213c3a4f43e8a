"""The judge's end of a host in another process."""

import sys

import cloudpickle
import torch

from ..engine.compare import Rejected
from ..engine.written import PACKAGE
from . import wire
from .endpoint import Endpoint


def pack(order) -> bytes:
    """Return the pickle of an order: what exercises define goes by value, since their documents are not there."""
    if package := sys.modules.get(PACKAGE):
        cloudpickle.register_pickle_by_value(package)
    return cloudpickle.dumps(order)


class RemoteHost:
    """The judge's end.

    Args:
        exchange: sends the bytes of an order and returns (JSON, tensors) of the reply.
    """

    def __init__(self, exchange):
        self.exchange = exchange

    def _order(self, name, *arguments):
        reply = wire.decode(*self.exchange(pack((name, arguments))))
        if not isinstance(reply, dict):
            raise wire.WireError("the answer's process sent what is no reply")
        if "rejected" in reply:
            match reply["rejected"]:
                case [str(code), str(message)]:
                    raise Rejected(code[:40], message[:2_000])
            raise wire.WireError("the answer's process sent what is no fault")
        return reply.get("result")

    def cell(self, key, source, imports, name, seed):
        """Run an answer cell. Returns: the answer, or a handle to it. Raises: as `run_cell`."""
        return self._order("cell", key, source, imports, name, seed)

    def adopt(self, answer):
        return answer

    def call(self, answer, args, kwargs, watches=()):
        match self._order("call", answer, args, kwargs, watches):
            case (got, [*read]) if len(read) == len(watches):
                return got, read
        raise wire.WireError("the answer's process sent what is no result of a call")

    def gradient(self, got, argument, weights=None):
        if not isinstance(got, torch.Tensor) or not got.requires_grad:
            return None
        return self._order("gradient", wire.handle(got.live), argument, weights)

    def look(self, function, results):
        return self._order("look", function, results)


class Loopback(RemoteHost):
    """A `RemoteHost` in this process: what crosses is what would cross. For audits, since it holds nobody in."""

    def __init__(self):
        endpoint = Endpoint()
        wire.kept.clear()

        super().__init__(lambda order: wire.halves(endpoint.handle(order)))

    def adopt(self, answer):
        wire.kept.append(answer)
        return wire.handle(len(wire.kept) - 1, wire.LiveCallable)
