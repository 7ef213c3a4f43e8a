"""The program in a sandbox that loads torch once and forks a process for each answer.

No answer runs in this process, and none can read it: it cannot be traced, its memory and its files are closed to the
processes that it forks, and these can signal themselves alone. If it is lost all the same, the judge makes another.
"""

import contextlib
import ctypes
import json
import os
import select
import signal
import socket
import sys

import pyseccomp

from ..engine.host import load_everything
from . import endpoint

WRITABLE = ("/tmp", "/dev/shm")
DENIED = (  # to an answer, besides what everybody is denied here
    *("fork", "vfork", "tkill", "pidfd_open", "pidfd_send_signal", "pidfd_getfd"),
    *("setpriority", "sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr", "ioprio_set"),
)
SIGNALS = ("kill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")
PR_SET_DUMPABLE = 4


def confine():
    """Let this process start no other, signal no other, and change the limits of no other, from now on."""
    rules = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    refuse, absent = pyseccomp.ERRNO(1), pyseccomp.ERRNO(38)
    for name in DENIED:
        rules.add_rule(refuse, name)
    for name in SIGNALS:
        rules.add_rule(refuse, name, pyseccomp.Arg(0, pyseccomp.NE, os.getpid()))
    rules.add_rule(refuse, "prlimit64", pyseccomp.Arg(0, pyseccomp.NE, 0))
    # a clone without CLONE_THREAD is a process; clone3 hides its flags, and without it the C library takes clone
    rules.add_rule(refuse, "clone", pyseccomp.Arg(0, pyseccomp.MASKED_EQ, 0x00010000, 0))
    rules.add_rule(absent, "clone3")
    rules.load()


def _readable(whether):
    """Say whether processes of the same user may read this one's memory and files."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_DUMPABLE, int(whether), 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def _looks():
    """Return path -> mode of all that lies where an answer may write; what is mounted there, it may not change."""
    found = {}
    for top in WRITABLE:
        found[top], device = os.stat(top).st_mode, os.stat(top).st_dev
        for parent, folders, names in os.walk(top):
            inside = {path: os.lstat(path) for path in (os.path.join(parent, name) for name in (*folders, *names))}
            inside = {path: at for path, at in inside.items() if at.st_dev == device}
            found |= {path: at.st_mode for path, at in inside.items()}
            folders[:] = [name for name in folders if os.path.join(parent, name) in inside]
    return found


def _answer(orders, replies):
    """Be the process of an answer; does not return."""
    try:
        nowhere = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):  # what this program itself complains of is the judge's to read, and no answer's
            os.dup2(nowhere, number)
        os.setsid()
        _readable(True)
        confine()
        endpoint.serve(os.fdopen(orders, "rb"), os.fdopen(replies, "wb"))
    finally:
        os._exit(1)


def _until_ended(child, control):
    """Wait until the process ends or the judge wants its end. Returns: its exit code, None if it had to be killed."""
    ended = os.pidfd_open(child)
    try:
        select.select([ended, control], [], [])
        grace = json.loads(control.recv(1000))["grace"]  # a process that ended waits for the judge to ask
        alone = bool(select.select([ended], [], [], grace)[0])
        if not alone:
            os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
        return os.waitstatus_to_exitcode(status) if alone else None
    finally:
        os.close(ended)


def main():
    """Fork a process for each message of the judge, until one has left something behind or none comes."""
    control = socket.socket(fileno=int(sys.argv[1]))
    _readable(False)
    before = _looks()  # Python or the package may lie there
    while True:
        message, streams, _, _ = socket.recv_fds(control, 1000, 2)
        if not message:
            return
        if json.loads(message)["heavy"]:
            load_everything()  # once; it takes seconds, which are not the answer's
            _clear(before)
        child = os.fork()
        if child == 0:
            control.close()
            _answer(*streams)
        for stream in streams:
            os.close(stream)
        code, clean = _until_ended(child, control), False
        with contextlib.suppress(OSError):
            clean = _looks() == before
        control.send(json.dumps({"code": code, "clean": clean}).encode())
        if not clean:
            return


def _clear(before):
    """Remove what the libraries have written."""
    for path in sorted(_looks().keys() - before.keys(), reverse=True):  # what is in a folder before the folder
        os.rmdir(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)


if __name__ == "__main__":
    main()
