"""The boundary: a process for one answer, in a bubblewrap sandbox.

What it may see is the system and the Python packages, read-only, without the exercises and their solutions; what it may
write is a folder of its own in memory, which goes with it. It has no network, sees no other process and can start none.
"""

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from functools import cache
from pathlib import Path

import psutil

import d2lmini

from ..engine.host import HostError
from . import wire

PACKAGE = Path(d2lmini.__file__).resolve().parent
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/alternatives")
DENIED = (
    *("fork", "vfork", "ptrace", "process_vm_readv", "process_vm_writev"),
    *("unshare", "setns", "mount", "umount2", "pivot_root", "chroot"),
    *("memfd_create", "shmget", "msgget", "semget", "mq_open"),  # memory that no limit of the process counts
    *("keyctl", "add_key", "request_key", "bpf", "perf_event_open", "userfaultfd", "io_uring_setup"),
)
STARTUP = 120.0  # seconds in which a process must have loaded torch
PATIENCE = 3.0  # times the limit that an answer may take on the clock; of processor time it has the limit itself
SPARE = 20.0  # seconds on the clock that are added to that
LOOK = 0.25  # seconds between two looks whether it does anything
ASLEEP = "asleep"  # the code where it did nothing for as long as its limit
MIB = 2**20


class NoSandbox(RuntimeError):
    """There is no sandbox on this system, and answers of strangers were to be run."""


@cache
def why_not() -> str:
    """Return why no sandbox can be had here; an empty string where one can."""
    if not sys.platform.startswith("linux"):
        return f"bubblewrap runs on Linux, this is {sys.platform}"
    try:
        with _rules() as rules:
            probe = [*_bubblewrap(rules), "/usr/bin/env", "true"]
            done = subprocess.run(probe, capture_output=True, text=True, timeout=30, pass_fds=[rules.fileno()])
    except FileNotFoundError:
        return "there is no bwrap: install the package bubblewrap"
    except (ImportError, OSError, RuntimeError, subprocess.TimeoutExpired) as error:
        return f"{type(error).__name__}: {error}"
    return "" if done.returncode == 0 else f"bwrap says: {done.stderr.strip()}"


def require(unsafe):
    """Raise `NoSandbox` unless there is one, or none is wanted."""
    if not unsafe and (reason := why_not()):
        raise NoSandbox(
            f"answers of strangers are run in a sandbox only, and there is none here ({reason}). Use the container "
            "that the page For lecturers describes. With --unsafe they run without one: each can then read, change and "
            "delete whatever you can, and send it anywhere"
        )


def _rules():
    """Return an open file with the system calls that are refused, for bubblewrap."""
    import pyseccomp  # it needs libseccomp, which only Linux has

    rules = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    refuse, absent = pyseccomp.ERRNO(1), pyseccomp.ERRNO(38)
    for name in DENIED:
        rules.add_rule(refuse, name)
    # a clone without CLONE_THREAD is a process; clone3 hides its flags, and without it the C library takes clone
    rules.add_rule(refuse, "clone", pyseccomp.Arg(0, pyseccomp.MASKED_EQ, 0x00010000, 0))
    rules.add_rule(absent, "clone3")
    file = tempfile.TemporaryFile()  # noqa: SIM115 - who asked for the rules closes it
    rules.export_bpf(file)
    file.seek(0)
    return file


def _bubblewrap(rules):
    """Return the command up to the program that is to be run in the sandbox."""
    words = ["bwrap", "--die-with-parent", "--new-session", "--unshare-all", "--unshare-user", "--disable-userns"]
    words += ["--uid", "65534", "--gid", "65534", "--hostname", "sandbox", "--cap-drop", "ALL", "--clearenv"]
    words += ["--size", str(64 * MIB), "--tmpfs", "/tmp", "--chdir", "/tmp"]  # first: Python may lie in /tmp
    for path in SYSTEM:
        if os.path.islink(path):
            words += ["--symlink", os.readlink(path), path]
        elif os.path.exists(path):
            words += ["--ro-bind", path, path]
    for path in _interpreter():
        words += ["--ro-bind", path, path]
    exercises = str(PACKAGE / "exercises")
    words += ["--ro-bind", str(PACKAGE), str(PACKAGE), "--tmpfs", exercises]  # the solutions are not there
    for folder in ("engine", "grading"):  # of what the program at the answer's end is made
        words += ["--ro-bind", f"{exercises}/{folder}", f"{exercises}/{folder}"]
    words += ["--remount-ro", exercises]
    words += ["--proc", "/proc", "--dev", "/dev", "--size", str(16 * MIB), "--tmpfs", "/dev/shm"]
    # /proc, too: its settings of the kernel belong to root, and the grader may be root
    words += ["--remount-ro", "/proc", "--remount-ro", "/dev", "--remount-ro", "/"]
    for name, value in _environment("/tmp").items():
        words += ["--setenv", name, value]
    return [*words, "--seccomp", str(rules.fileno()), "--"]


def _interpreter():
    """Return the folders of Python and its packages that are not the system's."""
    packages = [path for path in sys.path if path.endswith(("site-packages", "dist-packages")) and os.path.isdir(path)]
    return [path for path in dict.fromkeys((sys.base_prefix, sys.prefix, *packages)) if not path.startswith("/usr")]


def _environment(home):
    return {
        "HOME": home,
        "TMPDIR": home,
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(PACKAGE.parent),
        "PYTHONSAFEPATH": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "CUDA_VISIBLE_DEVICES": "",
        "OMP_NUM_THREADS": "1",
        "MPLBACKEND": "agg",
        "MPLCONFIGDIR": home,
    }


class AnswerProcess:
    """The process of one answer; use it with ``with``, at whose end it and all of its own are gone.

    Args:
        seconds: of processor time that the answer may take.
        memory: bytes that it may have beside what the libraries take.
        heavy: whether libraries for training and measuring are loaded before.
        unsafe: whether it runs without a sandbox.
    """

    def __init__(self, seconds, memory, heavy=False, unsafe=False):
        self.seconds, self.memory, self.heavy, self.unsafe = seconds, memory, heavy, unsafe
        self.left, self.idle = STARTUP, None  # None: it is not watched while it loads
        self.worked = None  # seconds of processor time, when it was last looked at

    def __enter__(self):
        program = [sys.executable, "-m", "d2lmini.exercises.grading.endpoint"]
        self.home = tempfile.TemporaryDirectory()
        options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        options |= {"start_new_session": True, "cwd": self.home.name}
        if self.unsafe:
            kept = {k: v for k, v in os.environ.items() if k in ("SYSTEMROOT", "PATH", "LD_LIBRARY_PATH")}
            self.process = subprocess.Popen(program, env=_environment(self.home.name) | kept, **options)
        else:
            with _rules() as rules:
                self.process = subprocess.Popen([*_bubblewrap(rules), *program], pass_fds=[rules.fileno()], **options)
        try:
            limits = {"seconds": self.seconds, "memory": self.memory, "heavy": self.heavy}
            self._send(json.dumps(limits).encode())
            self._receive()  # it says when it is ready: what it loads is not on the answer's clock
            self.left, self.idle = self._allowed(), 0.0
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)  # bubblewrap; whatever is inside dies with it
        except (AttributeError, ProcessLookupError, PermissionError):
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            try:
                pipe.close()
            except OSError:
                continue
        self.home.cleanup()

    def _allowed(self):
        """Seconds on the clock that the judge waits for the answer altogether."""
        return PATIENCE * self.seconds + SPARE

    def exchange(self, order):
        """Send an order and return (JSON, tensors) of the reply: bytes.

        Raises:
            HostError: the process ended, took too long, or sent too much.
        """
        self._send(order)
        return self._receive()

    def _send(self, data):
        def write():
            self.process.stdin.write(len(data).to_bytes(8, "little") + data)
            self.process.stdin.flush()

        self._in_time(write)

    def _receive(self):
        def read():
            text, tensors = wire.SIZES.unpack(wire.read_exactly(self.process.stdout, wire.SIZES.size))
            if text > wire.MOST_TEXT or tensors > wire.MOST_TENSORS:
                raise wire.WireError("the answer's process sent what is no result, or more than is taken")
            return wire.read_exactly(self.process.stdout, text), wire.read_exactly(self.process.stdout, tensors)

        return self._in_time(read)

    def _in_time(self, work):
        """Return ``work()``, which waits for the answer: in a thread, since a pipe knows no time limit everywhere."""
        done = queue.SimpleQueue()

        def run():
            try:
                done.put((work(), None))
            except (OSError, ValueError, EOFError, HostError) as error:
                done.put((None, error))

        threading.Thread(target=run, daemon=True).start()
        start = time.monotonic()
        while True:
            try:
                result, error = done.get(timeout=LOOK)
                break
            except queue.Empty:
                self._look_after(time.monotonic() - start)
        self.left -= time.monotonic() - start
        if isinstance(error, HostError):
            raise error
        if error is not None:
            self._lost()
        return result

    def _look_after(self, waited):
        """Raise `HostError` if the answer has had its time, or has done nothing for as long as its limit."""
        if waited > self.left:
            message = "had to be stopped, it did not end in time: is there an endless loop?"
            raise HostError(message, "timeout", "timeout")
        if self.idle is None:
            return
        before, self.worked = self.worked, self._processor_time()
        self.idle = self.idle + LOOK if self.worked is not None and self.worked == before else 0.0
        if self.idle > self.seconds:
            message = f"stopped, it did nothing for {self.seconds:g} s: does it sleep, or wait for something?"
            raise HostError(message, "timeout", ASLEEP)

    def _processor_time(self):
        """Return the seconds that the processes of the answer took; None where one works or waits for its turn."""
        try:
            bubblewrap = psutil.Process(self.process.pid)
            processes = [bubblewrap, *bubblewrap.children(recursive=True)]
            if any(process.status() != psutil.STATUS_SLEEPING for process in processes):
                return None
            return sum(sum(process.cpu_times()[:2]) for process in processes)
        except psutil.Error:  # it has just ended: what waits for its reply will say so
            return None

    def _lost(self):
        """Say how the process ended."""
        try:
            code = self.process.wait(5)
        except subprocess.TimeoutExpired:
            raise HostError("the answer's process closed its way back to the judge") from None
        number = -code if code < 0 else code - 128  # bubblewrap gives 128 + the signal
        # who ignores the first signal of the limit gets SIGKILL two seconds later
        late = number == getattr(signal, "SIGKILL", None) and self._allowed() - self.left >= self.seconds
        if number == getattr(signal, "SIGXCPU", None) or late:
            raise HostError(f"stopped after {self.seconds:g} s: is there an endless loop?", "timeout", "timeout")
        if number in set(signal.Signals):
            raise HostError(f"the answer's process was ended by {signal.Signals(number).name}")
        raise HostError(f"the answer's process ended with exit code {code}")
