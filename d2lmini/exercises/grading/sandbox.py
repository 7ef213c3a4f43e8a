"""The boundary: a bubblewrap sandbox for the answers of one notebook, in which each gets a process of its own.

What an answer may see is the system and the Python packages, read-only, without the exercises and their solutions; what
it may write is a folder in memory. It has no network. A sandbox in which an answer left something is not used again.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import d2lmini

PACKAGE = Path(d2lmini.__file__).resolve().parent
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/alternatives")
DENIED = (  # to all in the sandbox; `fork_server` has what an answer is denied besides
    *("ptrace", "process_vm_readv", "process_vm_writev"),
    *("unshare", "setns", "mount", "umount2", "pivot_root", "chroot"),
    *("memfd_create", "shmget", "msgget", "semget", "mq_open"),  # memory that no limit of the process counts
    *("keyctl", "add_key", "request_key", "bpf", "perf_event_open", "userfaultfd", "io_uring_setup"),
)
PATIENCE = 5.0  # seconds in which a process that was killed must be gone
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
    for name in DENIED:
        rules.add_rule(pyseccomp.ERRNO(1), name)
    file = tempfile.TemporaryFile()  # noqa: SIM115 - who asked for the rules closes it
    rules.export_bpf(file)
    file.seek(0)
    return file


def _bubblewrap(rules):
    """Return the command up to the program that is to be run in the sandbox."""
    words = ["bwrap", "--die-with-parent", "--new-session", "--unshare-all", "--unshare-user", "--disable-userns"]
    words += ["--uid", "65534", "--gid", "65534", "--hostname", "sandbox", "--cap-drop", "ALL", "--clearenv"]
    words += ["--proc", "/proc", "--dev", "/dev", "--size", str(16 * MIB), "--tmpfs", "/dev/shm"]
    words += ["--size", str(64 * MIB), "--tmpfs", "/tmp", "--chdir", "/tmp"]  # before Python, which may lie in one
    for path in SYSTEM:
        if os.path.islink(path):
            words += ["--symlink", os.readlink(path), path]
        elif os.path.exists(path):
            words += ["--ro-bind", path, path]
    for path in _interpreter():
        words += ["--ro-bind", path, path]
    exercises = str(PACKAGE / "exercises")
    words += ["--ro-bind", str(PACKAGE), str(PACKAGE), "--tmpfs", exercises]  # the solutions are not there
    for folder in ("engine", "grading"):  # of what the programs in it are made
        words += ["--ro-bind", f"{exercises}/{folder}", f"{exercises}/{folder}"]
    words += ["--remount-ro", exercises]
    # /proc, too: its settings of the kernel belong to root, and the grader may be root
    words += ["--remount-ro", "/proc", "--remount-ro", "/dev", "--remount-ro", "/"]
    for name, value in _environment("/tmp").items():
        words += ["--setenv", name, value]
    return [*words, "--seccomp", str(rules.fileno()), "--"]


def _interpreter():
    """Return the folders of Python and its packages that are not the system's."""
    packages = [path for path in sys.path if path.endswith(("site-packages", "dist-packages")) and os.path.isdir(path)]
    paths = dict.fromkeys((sys.base_prefix, sys.prefix, *packages))
    return [path for path in paths if not f"{path}/".startswith("/usr/")]


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


class Sandbox:
    """A sandbox for the answers of one notebook, one after another: made when the first begins, ended by `close`.

    In it `fork_server` loads torch once and forks a process for each answer. If that fails, ``words`` has its last.
    """

    def __init__(self):
        self.process = self.control = self.said = None
        self.words = ""

    def begin(self, heavy):
        """Start the process of an answer, and return the streams for its orders and its replies.

        Args:
            heavy: whether libraries for training and measuring are loaded before.
        """
        if self.process is None or self.process.poll() is not None:
            self._start()
        orders, to_answer = os.pipe()
        from_answer, replies = os.pipe()
        try:
            socket.send_fds(self.control, [json.dumps({"heavy": heavy}).encode()], [orders, replies])
        except OSError:
            self.close()  # whoever waits for a reply will be told that none comes
        finally:
            os.close(orders)
            os.close(replies)
        return os.fdopen(to_answer, "wb"), os.fdopen(from_answer, "rb")

    def end(self, grace=0.0):
        """Return the exit code of the answer's process, which is killed if it does not end by itself; None if it is.

        Args:
            grace: seconds in which it may end by itself.
        """
        if self.process is None:
            return None
        try:
            self.control.settimeout(grace + PATIENCE)
            self.control.send(json.dumps({"grace": grace}).encode())
            told = json.loads(self.control.recv(1000))
            code, clean = told["code"], told["clean"]
        except (OSError, ValueError, LookupError, TypeError):
            code, clean = None, False
            self.words = self._last_words()
        if not clean:
            self.close()
        return code

    def _last_words(self):
        """Return what the fork server complained of, if it has ended by itself; no answer can write there."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            if self.process.wait(1.0) > 0:
                self.said.seek(0)
                return self.said.read().decode(errors="replace").strip().rpartition("\n")[2]
        return ""

    def _start(self):
        self.close()
        self.words = ""
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, _rules() as rules:
            program = [sys.executable, "-m", "d2lmini.exercises.grading.fork_server", str(theirs.fileno())]
            self.said = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the process
            streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": self.said}
            passed = [rules.fileno(), theirs.fileno()]
            command = [*_bubblewrap(rules), *program]
            self.process = subprocess.Popen(command, pass_fds=passed, start_new_session=True, **streams)

    def close(self):
        """End all that runs in it."""
        if self.process is not None:
            _kill(self.process)  # bubblewrap; whatever is inside dies with it
        for open_one in filter(None, (self.control, self.said)):
            open_one.close()
        self.process = self.control = self.said = None


class Unprotected:
    """In place of a `Sandbox`: a fresh process for each answer, which can do whatever you can."""

    words = ""

    def __init__(self):
        self.process = None

    def begin(self, heavy):
        """As `Sandbox.begin`."""
        self.home = tempfile.TemporaryDirectory()
        kept = {k: v for k, v in os.environ.items() if k in ("SYSTEMROOT", "PATH", "LD_LIBRARY_PATH")}
        program = [sys.executable, "-m", "d2lmini.exercises.grading.endpoint", *["heavy"][: bool(heavy)]]
        options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        options |= {"start_new_session": True, "cwd": self.home.name, "env": _environment(self.home.name) | kept}
        self.process = subprocess.Popen(program, **options)
        return self.process.stdin, self.process.stdout

    def end(self, grace=0.0):
        """As `Sandbox.end`."""
        code = None
        if self.process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = self.process.wait(grace)
            self.close()
        return code

    def close(self):
        """End it, and all that it started."""
        if self.process is not None:
            _kill(self.process)
            self.home.cleanup()
        self.process = None


def _kill(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (AttributeError, ProcessLookupError, PermissionError):
        process.kill()
    process.wait()
