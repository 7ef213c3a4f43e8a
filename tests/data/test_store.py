"""Data sets are looked for, verified, and downloaded from a local server that misbehaves."""

import dataclasses
import gzip
import hashlib
import http.server
import os
import re
import signal
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path

import pytest

from d2lmini.data import registry, store
from d2lmini.data.store import DataError, DataFile, DataSet

CONTENT = bytes(range(256)) * 2_000
SHA = hashlib.sha256(CONTENT).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    """Misbehaves as the path asks for: good, slow, altered, short, cut (shorter than announced), missing."""

    def do_GET(self):
        self.server.requests.append(self.path)
        way = self.path.split("/")[1]
        body = {"altered": b"x" + CONTENT[1:], "short": CONTENT[:1_000]}.get(way, CONTENT)
        if way == "missing":
            return self.send_error(404)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if way == "cut":
            self.wfile.write(body[:1_000])
        elif way == "slow":
            self.wfile.write(body[:100_000])
            self.wfile.flush()
            self.server.halfway.set()
            self.server.go_on.wait(20)
            self.wfile.write(body[100_000:])
        else:
            self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.requests, server.halfway, server.go_on = [], threading.Event(), threading.Event()
    server.url = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()  # looks that often for its end
    yield server
    server.go_on.set()
    server.shutdown()
    server.server_close()


@pytest.fixture
def dataset(folders, server, monkeypatch):
    """A function that registers the set "toy" with one file, served in the given ways."""

    def make(*ways, content="", name="toy.bin"):
        urls = tuple(way if "://" in way else f"{server.url}/{way}/{name}" for way in ways)
        file = DataFile(name, SHA, len(CONTENT), urls, content)
        made = DataSet("toy", "a toy", "MIT", "nobody", (file,), "none", (str(folders / "system"),))
        monkeypatch.setitem(registry.SETS, "toy", made)
        return made

    return make


def left_behind(folders):
    """What there is in the cache besides the finished file."""
    return sorted(path.name for path in (folders / "cache").rglob("*") if path.name not in ("toy", "toy.bin"))


def cached(folders, content=CONTENT):
    path = folders / "cache" / "toy" / "toy.bin"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


# ---- where files are looked for


def test_order_of_look_up(dataset, folders, server):
    toy = dataset("good")
    places = ["one/toy", "one", "two/toy", "two", "cache/toy", "system"]
    for place in reversed(places):
        folder = folders / place
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "toy.bin").write_bytes(CONTENT)
        assert store.find(toy, "toy.bin") == folder / "toy.bin"
        assert registry.path("toy", "toy.bin") == folder / "toy.bin"
    assert server.requests == []


def test_nothing_is_downloaded_unasked(dataset, folders, server):
    toy = dataset("good")
    assert store.find(toy, "toy.bin") is None
    with pytest.raises(DataError, match=r"toy\.bin of toy is not on this machine\."):
        registry.path("toy", "toy.bin", download=False)
    assert "missing: toy.bin" in registry.status()
    assert server.requests == [] and not (folders / "cache").exists()


def test_other_folder_name(dataset, folders):
    toy = dataclasses.replace(dataset(), other_names=("plaything",))
    (folders / "two" / "plaything").mkdir()
    (folders / "two" / "plaything" / "toy.bin").write_bytes(CONTENT)
    assert store.find(toy, "toy.bin") == folders / "two" / "plaything" / "toy.bin"


def test_a_python_package_is_searched_and_not_imported(dataset, folders, monkeypatch):
    toy = dataclasses.replace(dataset(), packages=("toy_weights/model",))
    assert store.find(toy, "toy.bin") is None
    inside = folders / "site" / "toy_weights" / "model"
    inside.mkdir(parents=True)
    (inside.parent / "__init__.py").write_text("raise RuntimeError('imported')")
    (inside / "toy.bin").write_bytes(CONTENT)
    monkeypatch.syspath_prepend(folders / "site")
    assert store.find(toy, "toy.bin") == inside / "toy.bin"


def test_unknown_names(dataset):
    toy = dataset()
    with pytest.raises(ValueError, match=r"no data set 'toi', only fashion_mnist, .*toy"):
        registry.fetch("toi")
    with pytest.raises(ValueError, match=r"toy has no file 'toi', only toy\.bin"):
        store.find(toy, "toi")


# ---- damaged files

DAMAGE = {
    "truncated": (CONTENT[:-1], f"it has 511,999 bytes, expected 512,000 bytes with SHA-256 {SHA}"),
    "empty": (b"", "it has 0 bytes, expected"),
    "altered": (b"x" + CONTENT[1:], f"SHA-256 [0-9a-f]{{64}}, expected 512,000 bytes with SHA-256 {SHA}"),
}


@pytest.mark.parametrize("place", ["one/toy", "system"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_named_and_left_alone(dataset, folders, server, place, damage):
    toy = dataset("good")
    content, message = DAMAGE[damage]
    path = folders / place / "toy.bin"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    for ask in (lambda: store.find(toy, "toy.bin"), lambda: registry.fetch("toy")):
        with pytest.raises(DataError, match=message) as caught:
            ask()
        assert str(path) in str(caught.value) and "replace it, or move it out of the way" in str(caught.value)
    assert path.read_bytes() == content and server.requests == []
    assert "damaged" in registry.status() and str(path) in registry.status()


@pytest.mark.parametrize(("ways", "cure"), [((), "replace it, or move it"), (("ok",), "sets it aside")])
def test_a_file_that_changes_is_read_again(dataset, folders, ways, cure):
    toy = dataset(*ways)
    path = cached(folders)
    assert store.find(toy, "toy.bin") == path
    path.write_bytes(DAMAGE["altered"][0])
    os.utime(path, ns=(0, 0))
    with pytest.raises(DataError, match=cure):  # what no address serves is not fetched again
        store.find(toy, "toy.bin")


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_in_the_cache_is_set_aside(dataset, folders, damage):
    dataset("good")
    path = cached(folders, DAMAGE[damage][0])
    assert registry.fetch("toy") == {"toy.bin": path} and path.read_bytes() == CONTENT
    (aside,) = left_behind(folders)
    assert aside.startswith("toy.bin.damaged-") and (path.parent / aside).read_bytes() == DAMAGE[damage][0]


def test_a_damaged_file_in_the_cache_stays_without_network(dataset, folders):
    dataset("http://127.0.0.1:9/toy.bin")
    path = cached(folders, CONTENT[:10])
    with pytest.raises(DataError, match="it has 10 bytes, expected") as caught:
        registry.fetch("toy")
    told = str(caught.value)
    assert str(path) in told and "http://127.0.0.1:9/toy.bin: ConnectionError: the host cannot be reached" in told
    assert path.read_bytes() == CONTENT[:10] and left_behind(folders) == []


def unreadable(path):
    """Puts a file there that opens and cannot be read, by root neither: the memory at address 0."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to("/proc/self/mem")


def loop(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(path)


NO_FILES = [
    (unreadable, "gzip", r"it cannot be read \(Input/output error\)"),
    (loop, "", r"it cannot be read \(Too many levels of symbolic links\)"),
    (lambda path: path.mkdir(parents=True), "", "it is a folder, expected a file"),
    (lambda path: path.mkdir(parents=True), "zip:toy.txt", "it is a folder, expected a file"),
]


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="needs Linux")
@pytest.mark.parametrize(("make", "content", "message"), NO_FILES)
def test_what_cannot_be_read_is_told(dataset, folders, server, make, content, message):
    toy = dataset("good", content=content)
    make(folders / "one" / "toy.bin")
    for ask in (lambda: store.find(toy, "toy.bin"), lambda: registry.fetch("toy")):
        with pytest.raises(
            DataError, match=rf"one/toy\.bin is not the toy\.bin of toy: {message}; replace it, or move"
        ):
            ask()
    assert server.requests == [] and re.search(message, registry.status())


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="needs Linux")
@pytest.mark.parametrize(("make", "content", "message"), [case for case in NO_FILES if not case[1]])
def test_what_cannot_be_read_in_the_cache_is_set_aside(dataset, folders, make, content, message):
    dataset("good", content=content)
    make(folders / "cache" / "toy" / "toy.bin")
    assert registry.fetch("toy")["toy.bin"].read_bytes() == CONTENT
    (aside,) = left_behind(folders)
    assert aside.startswith("toy.bin.damaged-")


def test_a_folder_that_may_not_be_entered_is_told(dataset, folders, monkeypatch):
    toy, stat = dataset("good"), Path.stat

    def closed(path, **options):
        if path.parent == folders / "two":
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, **options)

    monkeypatch.setattr(Path, "stat", closed)  # what a folder of somebody else does to who is not root
    with pytest.raises(DataError, match=r"two/toy\.bin .*: it cannot be read \(Permission denied\)"):
        store.find(toy, "toy.bin")
    assert "damaged" in registry.status()


# ---- archives


def pack(path, kind, content=CONTENT):
    if kind == "gzip":
        path.write_bytes(gzip.compress(content))
    else:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("some/folder/toy.txt", content)
            archive.writestr("__MACOSX/._toy.txt", b"junk")


@pytest.mark.parametrize("kind", ["gzip", "zip:toy.txt"])
def test_what_counts_is_the_content(dataset, folders, kind):
    toy = dataset(content=kind)
    path = folders / "one" / "toy.bin"
    pack(path, kind)
    assert store.find(toy, "toy.bin") == path
    wrong_size = dataclasses.replace(toy, files=(dataclasses.replace(toy.files[0], size=3),))
    with pytest.raises(DataError, match=r"512,000 bytes .*expected 3 bytes"):
        store.find(wrong_size, "toy.bin")
    pack(path, kind, CONTENT[1:])
    with pytest.raises(DataError, match=rf"unpacked \({kind}\) {len(CONTENT) - 1:,} bytes with SHA-256"):
        store.find(toy, "toy.bin")
    pack(path, kind)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(DataError, match="cut off or no such archive"):
        store.find(toy, "toy.bin")
    path.write_bytes(b"no archive at all")
    with pytest.raises(DataError, match="cut off or no such archive"):
        store.find(toy, "toy.bin")


def test_a_zip_without_the_member(dataset, folders):
    toy = dataset(content="zip:other.txt")
    pack(folders / "one" / "toy.bin", "zip")
    with pytest.raises(DataError, match=r"no other\.txt inside"):
        store.find(toy, "toy.bin")


def test_git_blob_id(folders):
    # `printf 'hello\n' | git hash-object --stdin`
    toy = DataSet("toy", "", "", "", (DataFile("toy.bin", "ce013625030ba8dba906f756967f9e9ca394464a", 6),))
    path = folders / "one" / "toy.bin"
    path.write_bytes(b"hello\n")
    assert store.find(toy, "toy.bin") == path
    path.write_bytes(b"hellO\n")
    with pytest.raises(DataError, match="git blob id"):
        store.find(toy, "toy.bin")


# ---- downloads


def test_download(dataset, folders, server):
    dataset("good")
    path = registry.path("toy", "toy.bin")
    assert path == folders / "cache" / "toy" / "toy.bin" and path.read_bytes() == CONTENT
    assert registry.path("toy", "toy.bin") == path
    assert server.requests == ["/good/toy.bin"] and left_behind(folders) == []


@pytest.mark.parametrize(
    ("way", "message"),
    [
        ("missing", "404"),
        ("altered", "SHA-256"),
        ("short", r"it has 1,000 bytes, expected 512,000"),
        ("cut", "1000 bytes read|1,000 bytes"),
        ("http://127.0.0.1:9/toy.bin", "ConnectionError"),
    ],
)
def test_a_download_that_fails(dataset, folders, way, message):
    toy = dataset(way)
    with pytest.raises(DataError, match=message) as caught:
        registry.fetch("toy")
    told = str(caught.value)
    assert toy.files[0].urls[0] in told and "under the name toy.bin" in told
    for place in ("one/toy", "one", "two", "cache/toy", "system"):
        assert f"\n  {folders / place}\n" in told + "\n"
    assert not (folders / "cache" / "toy" / "toy.bin").exists() and left_behind(folders) == []


def test_the_second_address_helps(dataset, server):
    dataset("missing", "altered", "good")
    assert registry.path("toy", "toy.bin").read_bytes() == CONTENT
    assert [path.split("/")[1] for path in server.requests] == ["missing", "altered", "good"]


def test_no_address(dataset):
    dataset()
    with pytest.raises(DataError, match=r"not on this machine\.\nNo address serves it: none"):
        registry.fetch("toy")


def test_without_d2lmini_data_the_error_names_it(dataset, monkeypatch):
    dataset()
    monkeypatch.delenv("D2LMINI_DATA")
    with pytest.raises(DataError, match="the environment variable D2LMINI_DATA"):
        registry.fetch("toy")


def test_cache_that_cannot_be_written(dataset, folders, server):
    dataset("good")
    (folders / "cache").write_text("in the way")
    with pytest.raises(DataError, match=r"cannot be written .*set D2LMINI_CACHE"):
        registry.fetch("toy")
    assert (folders / "cache").read_text() == "in the way" and server.requests == []


def obtain_elsewhere(dataset):
    """Start a process that asks for the file."""
    code = "import sys; from d2lmini.data.store import *; obtain(eval(sys.argv[1]), 'toy.bin')"
    return subprocess.Popen([sys.executable, "-c", code, repr(dataset)], stderr=subprocess.DEVNULL)


def test_two_processes_at_once(dataset, folders, server):
    toy = dataset("slow")
    workers = [obtain_elsewhere(toy) for _ in range(2)]
    final = folders / "cache" / "toy" / "toy.bin"
    sizes = set()
    deadline = time.monotonic() + 60
    while any(worker.poll() is None for worker in workers) and time.monotonic() < deadline:
        if final.exists():
            sizes.add(final.stat().st_size)
        if len(server.requests) == 2:
            server.go_on.set()
        time.sleep(0.002)
    assert [worker.returncode for worker in workers] == [0, 0]
    assert len(server.requests) == 2, "both were to be under way at once"
    assert sizes <= {len(CONTENT)} and final.read_bytes() == CONTENT and left_behind(folders) == []


def test_killed_half_way(dataset, folders, server):
    toy = dataset("slow")
    worker = obtain_elsewhere(toy)
    assert server.halfway.wait(60)
    time.sleep(0.2)  # some of it reaches the disk
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    assert not (folders / "cache" / "toy" / "toy.bin").exists()
    (partial,) = {name for name in left_behind(folders) if name.startswith(store._PARTIAL)}
    dataset("good")
    path = registry.path("toy", "toy.bin")
    assert path.read_bytes() == CONTENT
    assert (path.parent / partial).exists(), "it might be another process that is still at it"
    os.utime(path.parent / partial, (0, 0))
    path.unlink()
    registry.path("toy", "toy.bin")
    assert left_behind(folders) == []
