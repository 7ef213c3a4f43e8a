"""The sandbox holds: hostile answers are tried in it, the harmless tries first; deleting only where those were held."""

import os
import socket
import tempfile
import textwrap
import threading
import time
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path

import pytest
import torch
import toy_exercise
from conftest import ROOT

from d2lmini.exercises.engine.compare import Rejected
from d2lmini.exercises.engine.host import HostError
from d2lmini.exercises.engine.judge import judge
from d2lmini.exercises.grading import process, sandbox
from d2lmini.exercises.grading.answer_cells import answers
from d2lmini.exercises.grading.remote import RemoteHost

REASON = sandbox.why_not()
if REASON and os.environ.get("D2LMINI_REQUIRE_SANDBOX"):
    raise RuntimeError(f"no sandbox: {REASON}")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(REASON), reason=f"NO SANDBOX HERE, NOT TRIED: {REASON}")]
MIB = 2**20
SOLUTION = "def doubled(x):\n    return 2.0 * x\n"


@contextmanager
def answering(source, name="doubled", seconds=10.0, memory=2**30, place=None, heavy=False):
    own = nullcontext(place) if place else closing(sandbox.Sandbox())
    with own as place, process.AnswerProcess(place, seconds, memory, heavy) as answer_process:
        host = RemoteHost(answer_process.exchange)
        yield host, host.cell("own-99.1", textwrap.dedent(source), [], name, 1)


def verdict_on(source, **limits):
    try:
        with answering(source, **limits) as (host, answer):
            return judge(toy_exercise.PART, answer, seed=3, host=host)
    except HostError as error:
        return error


def report_of(source, **options):
    """Return what the function ``probe`` of a cell returns: plain data."""
    with answering(source, "probe", **options) as (host, probe):
        return host.call(probe, (), {})[0]


TRIES = """
import os, socket, subprocess, sys, threading

def outcome(function):
    try:
        return "done: " + repr(function())[:80]
    except BaseException as error:
        return type(error).__name__

def write(folder):
    with open(os.path.join(folder, "d2lmini-was-here"), "w") as file:
        file.write("x")

def fill(folder):
    for number in range(40):
        with open(f"{folder}/{number}", "wb") as file:
            file.write(bytes(8 * 2**20))

def thread():
    found = []
    one = threading.Thread(target=lambda: found.append(1))
    one.start()
    one.join()
    return found[0]

def link(target):
    if not os.path.lexists("/tmp/link"):
        os.symlink(target, "/tmp/link")
    return open("/tmp/link").read(20)

def probe():
    found = {"write " + folder: outcome(lambda: write(folder)) for folder in FOLDERS}
    found |= {"connect " + str(where): outcome(lambda: connect(where)) for where in SOCKETS}
    found |= {
        "fork": outcome(lambda: os.fork() or os._exit(0)),
        "subprocess": outcome(lambda: subprocess.run(["true"])),
        "system": outcome(lambda: os.system("true") and 1 / 0),
        "thread": outcome(thread),
        "link": outcome(lambda: link(SECRET)),
        "hard link": outcome(lambda: os.link("/usr/bin/env", "/tmp/env")),
        "fill": outcome(lambda: fill("/tmp")),
        "fill shm": outcome(lambda: fill("/dev/shm")),
        "kill": outcome(lambda: os.kill(PARENT, 0)),
        "own folder": outcome(lambda: open("/tmp/mine", "w").close()),
        "solution": outcome(lambda: __import__("d2lmini.exercises.ch03.d2l_11_3_1")),
        "solution file": outcome(lambda: open(SOLUTION_FILE).read(20)),
        "chroot": outcome(lambda: os.chroot("/tmp")),
        "sysctl": outcome(lambda: open("/proc/sys/kernel/core_pattern", "a").close()),
        "nice": outcome(lambda: os.setuid(0)),
    }
    found["environment"] = sorted(os.environ)
    found["processes"] = sorted(int(name) for name in os.listdir("/proc") if name.isdigit())
    found["root"] = sorted(os.listdir("/"))
    return found

def connect(where):
    kind = socket.AF_UNIX if isinstance(where, str) else socket.AF_INET
    with socket.socket(kind, socket.SOCK_STREAM) as one:
        one.settimeout(2)
        one.connect(where)
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What harmless tries to reach out of the sandbox came to."""
    folder = tmp_path_factory.mktemp("outside")
    secret = folder / "secret"
    secret.write_text("secret")
    os.environ["D2LMINI_TEST_SECRET"] = "x"
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as unix:
        unix.bind("\0d2lmini-test")
        unix.listen()
        names = {
            "FOLDERS": ["/", "/usr", "/etc", "/proc", "/dev", *map(str, (folder, sandbox.PACKAGE, Path.home()))],
            "SOCKETS": [server.getsockname(), "\0d2lmini-test"],
            "SECRET": str(secret),
            "PARENT": os.getpid(),
            "SOLUTION_FILE": str(sandbox.PACKAGE / "exercises" / "ch03" / "d2l_11_3_1.py"),
        }
        yield report_of(TRIES + "".join(f"{name} = {value!r}\n" for name, value in names.items()))
    del os.environ["D2LMINI_TEST_SECRET"]
    assert not (folder / "d2lmini-was-here").exists()


def test_no_file_outside_is_written_and_none_of_the_users_is_read(found):
    assert not [name for name, came in found.items() if name.startswith("write") and came.startswith("done")]
    assert found["link"] in ("FileNotFoundError", "PermissionError")
    assert found["hard link"] in ("OSError", "PermissionError") and found["sysctl"] != "done: None"
    assert found["solution"] == "ModuleNotFoundError" and found["solution file"] == "FileNotFoundError"
    assert not {"home", "root", "mnt", "srv", "var", "sys", "run"} & set(found["root"]) - {
        Path(p).parts[1] for p in _bound()
    }


def _bound():
    """The folders that are there for Python's sake."""
    return [str(sandbox.PACKAGE), *sandbox._interpreter()]


def test_nothing_is_connected_started_or_signalled(found):
    for name, came in found.items():
        if name.startswith("connect") or name in ("fork", "subprocess", "kill", "chroot", "nice"):
            assert not came.startswith("done"), (name, came)
    assert found["system"].startswith(("done: -1", "ZeroDivision", "PermissionError", "OSError"))
    assert len(found["processes"]) <= 3  # bubblewrap's own, and the answer


def test_memory_on_disk_has_a_limit_and_the_own_folder_and_threads_work(found):
    assert found["fill"] == found["fill shm"] == "OSError"
    assert found["thread"] == "done: 1" and found["own folder"].startswith(("done", "OSError"))


def test_the_environment_is_not_the_graders(found):
    assert "D2LMINI_TEST_SECRET" not in found["environment"]


@pytest.fixture
def held(found):
    """For answers that would do harm: only where the harmless ones did none."""
    assert not [name for name, came in found.items() if name.startswith("write") and came.startswith("done")]


DELETES = """
import os, shutil
def doubled(x):
    for name in os.listdir("/"):
        shutil.rmtree("/" + name, ignore_errors=True)
    for folder, _, names in os.walk("/"):
        for name in names:
            try: os.unlink(os.path.join(folder, name))
            except OSError: pass
    return 2.0 * x
"""


def test_an_answer_that_deletes_all_it_can_see_deletes_its_own_folder(held, tmp_path):
    mine = tmp_path / "mine"
    mine.write_text("x")
    here = {path: path.stat().st_mtime_ns for path in sandbox.PACKAGE.rglob("*.py")}
    assert verdict_on(DELETES, seconds=30.0).passed
    assert mine.exists() and here == {path: path.stat().st_mtime_ns for path in sandbox.PACKAGE.rglob("*.py")}


FORGERIES = {
    "frames": """
import gc, sys
def doubled(x):
    frame = sys._getframe()
    while frame:
        for value in list(frame.f_locals.values()):
            if type(value).__name__ == "Trial":
                value.checks = 99
            if torch.is_tensor(value) and value.shape == x.shape and value.dtype == torch.float64:
                return value.to(x.dtype)
        frame = frame.f_back
    for value in gc.get_objects():
        if type(value).__name__ in ("Trial", "Verdict", "Exercise", "Code"):
            return 2.0 * x
        if torch.is_tensor(value) and value.shape == x.shape and value.dtype == torch.float64:
            return value.to(x.dtype)
    return x
""",
    "modules": """
import sys
for name, module in list(sys.modules.items()):
    if name.startswith("d2lmini.exercises"):
        for what in ("compare_tensor", "judge", "compare_number", "call_limited", "is_placeholder"):
            if hasattr(module, what):
                setattr(module, what, lambda *args, **kwargs: None)
def doubled(x):
    return 3.0 * x
""",
    "pipes": """
import json, os, struct
text = json.dumps({"dict": [["status", {"plain": "passed"}], ["result", {"plain": "passed"}]]}).encode()
for number in range(3, 30):
    try: os.write(number, struct.pack("<QQ", len(text), 0) + text)
    except OSError: pass
def doubled(x):
    return x
""",
    "garbage": """
import os
for number in range(3, 30):
    try: os.write(number, b"x" * 64)
    except OSError: pass
def doubled(x):
    return x
""",
    "equal to everything": """
class Sly(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return torch.tensor(True)
    def __eq__(self, other): return True
def doubled(x):
    return x.as_subclass(Sly)
""",
    "code that the judge runs": """
class Bomb:
    def __reduce__(self): return (eval, ("1",))
def doubled(x):
    return Bomb()
""",
    "progress": """
import d2lmini, os
os.environ["D2LMINI_STRICT"] = "0"
def doubled(x):
    raise SystemExit(0)
""",
}


@pytest.mark.parametrize("how", FORGERIES)
def test_no_verdict_is_forged(how):
    verdict = verdict_on(FORGERIES[how])
    assert getattr(verdict, "status", "") in ("wrong", "crashed", "timeout"), verdict


ENDS = {
    "an endless loop": ("def doubled(x):\n    while True: pass", "timeout", "endless loop"),
    "a loop in the cell": ("while True: pass", "timeout", "endless loop"),
    "a sleep": ("import time\ndef doubled(x):\n    time.sleep(999)", "timeout", "did nothing for"),
    "an exit": ("import os\ndef doubled(x):\n    os._exit(0)", "crashed", "ended with exit code 0"),
    "a signal": ("import os\ndef doubled(x):\n    os.kill(os.getpid(), 9)", "crashed", "SIGKILL"),
    "much memory": ("def doubled(x):\n    return torch.zeros(2**30).to(x)[: len(x)]", "wrong", "alloc"),
    "a large result": ("def doubled(x):\n    return torch.zeros(2**27)", "wrong", "more than is taken"),
    "signals blocked": (
        "import signal\nfor n in range(1, 32):\n    try: signal.signal(n, signal.SIG_IGN)\n    except OSError: pass\n"
        "def doubled(x):\n    while True: pass",
        "timeout",
        "",
    ),
    "much output": (
        "import os\ndef doubled(x):\n    print('x' * 10**8); os.write(2, b'x' * 10**6)\n    return x",
        "wrong",
        "",
    ),
}


@pytest.mark.parametrize("how", ENDS)
def test_limits_end_an_answer_and_say_so(how, monkeypatch):
    monkeypatch.setattr(process, "SPARE", 1.0)
    source, status, fragment = ENDS[how]
    start = time.monotonic()
    verdict = verdict_on(source, seconds=1.0)
    assert verdict.status == status and fragment in str(verdict), verdict
    assert time.monotonic() - start < 60


SMALL = "def doubled(x):\n    kept = []\n    while True: kept.append([0] * 20); sum(range(200))"


def test_an_answer_that_fills_memory_too_slowly_to_be_refused_any_is_told_so(monkeypatch):
    """Many small things: the time is up before the memory is full."""
    monkeypatch.setattr(process, "MUCH", 2**25)
    verdict = verdict_on(SMALL, seconds=2.0)
    assert (verdict.status, verdict.code) == ("timeout", "memory")
    assert "of memory: does it collect more and more?" in str(verdict)


def test_a_process_that_reads_nothing_does_not_hold_the_judge_up(monkeypatch):
    monkeypatch.setattr(process, "SPARE", 1.0)
    source = (
        "import os\nfor n in range(3, 30):\n    try: os.close(n)\n    except OSError: pass\ndef doubled(x): return x"
    )
    assert verdict_on(source, seconds=1.0).status in ("crashed", "timeout")


def test_everything_is_gone_when_the_answer_is_done():
    before = threading.active_count()
    assert verdict_on(SOLUTION).passed
    children = [p for p in os.listdir("/proc") if p.isdigit() and _parent(p) == os.getpid()]
    assert not [p for p in children if "bwrap" in Path(f"/proc/{p}/comm").read_text()]
    assert threading.active_count() == before


def _parent(process):
    try:
        return int(Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except OSError:
        return None


@pytest.fixture
def shared():
    with closing(sandbox.Sandbox()) as place:
        yield place


REACHES = (
    TRIES
    + """
import ctypes, resource, signal
libc = ctypes.CDLL(None, use_errno=True)

def called(*words):
    if libc.syscall(*words) < 0:
        raise OSError(ctypes.get_errno(), "refused")

def probe():
    parent = os.getppid()
    found = {f"read {name}": outcome(lambda: open(f"/proc/{parent}/{name}", "rb").read(1)) for name in
             ("mem", "environ", "maps", "auxv", "syscall")}
    found["descriptors"] = outcome(lambda: [os.open(f"/proc/{parent}/fd/{n}", os.O_RDWR) for n in range(5)])
    found["links"] = outcome(lambda: [os.readlink(f"/proc/{parent}/fd/{n}") for n in range(5)])
    for other in (parent, 1, 0, -1, -parent):
        found[f"signal {other}"] = outcome(lambda: os.kill(other, 0))
    found["stop"] = outcome(lambda: os.kill(parent, signal.SIGSTOP))
    found["signal of a thread"] = outcome(lambda: called(234, parent, parent, 0))
    found["limits"] = outcome(lambda: resource.prlimit(parent, resource.RLIMIT_CPU, (1, 1)))
    found["handle"] = outcome(lambda: os.pidfd_open(parent))
    found["trace"] = outcome(lambda: called(101, 16, parent, 0, 0))
    found["priority"] = outcome(lambda: os.setpriority(os.PRIO_PROCESS, parent, 19))
    return found
"""
)


def test_an_answer_reaches_neither_the_fork_server_nor_the_next_answer(shared):
    came = report_of(REACHES, place=shared)
    assert len(came) == 18 and not [name for name, outcome in came.items() if outcome.startswith("done")], came
    running = shared.process.pid
    assert verdict_on(SOLUTION, place=shared).passed and shared.process.pid == running


# what works in a notebook and does not matter for the answer
NEUTRAL = [
    "d2l.check('own-99.1', 1); d2l.hint('own-99.1'); d2l.review('a', 'agrees'); d2l.progress('03'); d2l.reset('a')",
    "from d2lmini import check, hint, progress, reset, review\ncheck('own-99.1', 1)",
    "from d2lmini.exercises import check, progress_report\ncheck('own-99.1', 1)",
    "import d2lmini.exercises as ours\nours.hint('own-99.1')",
    "display(3)\nshown = display('x', display_id=True)\nshown.update('y')",
    "get_ipython().run_line_magic('matplotlib', 'inline')\nif 'google.colab' in str(get_ipython()): 1 / 0",
    "from IPython.display import HTML, clear_output, display\ndisplay(HTML('x'))\nclear_output()",
    "from IPython import get_ipython\nget_ipython().system('ls')",
    "from google.colab import drive, files\ndrive.mount('/content/drive')",
    "%timeit 1 + 1\n%config InlineBackend.figure_format = 'svg'\n!ls *.py | head\n!ls \\\n  -la",
    "files = !ls\nfor file in files: print(file)\ntimes = %timeit -o 1 + 1\nlen?\ntorch.*lin*?",
    "%time two = 2\nassert two == 2",
    "import asyncio\ntask = asyncio.create_task(asyncio.sleep(0))\nawait task",
    "from __future__ import annotations\ndef other(x: Nowhere): pass",
    "d2l.show_text('**x**')\nd2l.show_table([[1]], ['a'])\nd2l.plot([1, 2], [[1, 2]])",
    "x = torch.arange(5.0)\ndisplay(d2l.figures.KernelPooling(x, x, 2.5))\nd2l.figures.KernelPooling(x, x, 2.5)",
    "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()",
    "if __name__ == '__main__': print(len(In), Out, input('Go on?'))",
]


def test_lines_that_do_not_matter_for_the_answer_cost_it_nothing(shared):
    came = {}
    for line in NEUTRAL:
        (cell,) = answers([f"# exercise: d2l-11.3.2\n{line}\n{SOLUTION}"]).values()
        try:
            came[line] = verdict_on(cell, place=shared, seconds=30.0)
        except Rejected as fault:
            came[line] = fault.message
    assert [(line, str(verdict)) for line, verdict in came.items() if not getattr(verdict, "passed", False)] == []


LEAVES = {
    "a file": "open('/tmp/left', 'w').write('x')",
    "shared memory": "open('/dev/shm/left', 'w').write('x')",
    "a closed folder": "os.chmod('/tmp', 0o500)",
}
FINDS = "import os\ndef probe(): return [os.stat('/tmp').st_mode, os.listdir('/tmp'), os.listdir('/dev/shm')]"


@pytest.mark.parametrize("what", LEAVES)
def test_what_an_answer_leaves_is_not_there_for_the_next(shared, what):
    before = report_of(FINDS, place=shared)
    assert before[1:] == [[up.name for up in ROOT.parents if up.parent == Path("/tmp")], []]  # the project's own
    did = report_of(f"import os\ndef probe():\n    {LEAVES[what]}\n    return 'done'", place=shared)
    assert did == "done" and report_of(FINDS, place=shared) == before


@pytest.fixture(params=["/tmp", "/dev/shm"])
def below(request, monkeypatch):
    """A folder of Python's packages below one in which answers may write."""
    with tempfile.TemporaryDirectory(dir=request.param) as outer:
        inner = Path(outer, "environment", "packages")
        (inner / "lib").mkdir(parents=True)
        (inner / "lib" / "module.py").write_text("x = 1")
        before = sandbox._interpreter()
        monkeypatch.setattr(sandbox, "_interpreter", lambda: [*before, str(inner)])
        yield inner


def test_the_project_may_lie_below_a_folder_that_answers_write_to(below, shared):
    """What libraries for training and measuring leave there is removed, and what was there stays."""
    for heavy in (True, False, True):
        with answering(SOLUTION, place=shared, heavy=heavy) as (host, answer):
            assert judge(toy_exercise.PART, answer, seed=3, host=host).passed
        found = report_of(f"def probe(): return open({str(below / 'lib' / 'module.py')!r}).read()", place=shared)
        assert found == "x = 1"
    running = shared.process.pid
    assert report_of(FINDS, place=shared) and shared.process.pid == running
    left = str(below.parent / "left")
    assert report_of(f"def probe():\n    open({left!r}, 'w').close()\n    return 'done'", place=shared) == "done"
    assert report_of(f"import os\ndef probe(): return os.path.exists({left!r})", place=shared) is False


def test_what_the_fork_server_complains_of_is_kept(monkeypatch):
    environment = sandbox._environment
    monkeypatch.setattr(sandbox, "_environment", lambda home: environment(home) | {"PYTHONHOME": "/nowhere"})
    with pytest.raises(RuntimeError, match=r"the sandbox ended:\s+\S"), answering(SOLUTION):
        pass


def test_answers_share_no_state_and_a_lost_sandbox_is_made_anew(shared):
    counts = "import os, d2lmini\nd2lmini.seen = getattr(d2lmini, 'seen', 0) + 1\ndef probe(): return d2lmini.seen"
    assert [report_of(counts, place=shared) for _ in range(2)] == [1, 1]
    shared.process.kill()
    shared.process.wait()
    assert verdict_on(SOLUTION, place=shared).passed
    with pytest.raises(HostError, match="closed its way"), answering(SOLUTION, place=shared) as (host, answer):
        shared.process.kill()
        for _ in range(100):  # what runs inside ends a moment after it
            host.call(answer, (torch.ones(3),), {})
            time.sleep(0.05)
    assert verdict_on(SOLUTION, place=shared).passed
