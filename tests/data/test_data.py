"""Data sets: look-up, verification, downloads from a local server that misbehaves, loaders, shipped files."""

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
import torch

from d2lmini.data import catalogue, images, registry, store, text
from d2lmini.data.store import DataError, DataFile, DataSet
from tools import make_fashion_subset

CONTENT = bytes(range(256)) * 2_000
SHA = hashlib.sha256(CONTENT).hexdigest()
REAL = [name for name in registry.SETS if any((f / name).is_dir() for f in store.data_folders())]


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
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.go_on.set()
    server.shutdown()
    server.server_close()


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Two folders named by D2LMINI_DATA, a cache and a system folder, all empty; no proxy to the server."""
    for name in ("one", "two", "system"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("D2LMINI_DATA", os.pathsep.join([str(tmp_path / "one"), str(tmp_path / "two")]))
    monkeypatch.setenv("D2LMINI_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return tmp_path


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


def test_a_file_that_changes_is_read_again(dataset, folders):
    toy = dataset()
    path = cached(folders)
    assert store.find(toy, "toy.bin") == path
    path.write_bytes(DAMAGE["altered"][0])
    os.utime(path, ns=(0, 0))
    with pytest.raises(DataError, match="sets it aside"):
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


# ---- the catalogue


@pytest.mark.parametrize("name", list(catalogue.SETS))
def test_entry(name):
    dataset = catalogue.SETS[name]
    assert dataset.name == name and re.fullmatch(r"[a-z0-9_]+", name)
    assert dataset.title and dataset.licence and dataset.citation and dataset.pitfalls and dataset.files
    assert len({file.name for file in dataset.files}) == len(dataset.files)
    for file in dataset.files:
        assert re.fullmatch("[0-9a-f]{64}|[0-9a-f]{40}", file.hash) and file.size > 0
        assert file.content in ("", "gzip") or file.content.startswith("zip:")
        assert file.urls or name == "wikitext2_train_reordered"
        for url in file.urls:
            assert re.match(r"https?://[^/ ]+/\S+$", url)
            if "raw.githubusercontent.com" in url:
                assert re.search("/[0-9a-f]{40}/", url), f"{url} does not name a commit: it may change"


@pytest.mark.skipif(not REAL, reason="REAL DATA NOT TESTED: no set is in D2LMINI_DATA")
def test_real_files_are_what_the_catalogue_says(monkeypatch):
    monkeypatch.setenv("D2LMINI_CACHE", os.devnull)
    for name in REAL:
        dataset = registry.get(name)
        found = [file.name for file in dataset.files if store.find(dataset, file.name)]
        assert found, name
        assert name == "wikitext2" or len(found) == len(dataset.files)


@pytest.mark.skipif("gutenberg" not in REAL, reason="REAL NOVELS NOT TESTED: they are not in D2LMINI_DATA")
def test_every_novel_is_stripped():
    for file in registry.get("gutenberg").files:
        novel = text.load_text("gutenberg", int(file.name.removesuffix(".txt")), download=False)
        assert len(novel) > 0.85 * file.size, file.name
        assert "***" not in novel[:300] and "Produced by" not in novel[:300] and "\r" not in novel
        for word in ("END OF THIS PROJECT", "End of the Project Gutenberg", "FULL LICENSE", "www.gutenberg"):
            assert word not in novel, f"{file.name}: {word}"


# ---- Fashion-MNIST


@pytest.mark.parametrize(("split", "each"), make_fashion_subset.PER_CLASS.items())
def test_shipped_part(split, each):
    pictures, labels = images.fashion_mnist(split, "shipped")
    assert pictures.dtype == torch.uint8 and pictures.shape == (10 * each, 28, 28)
    assert labels.dtype == torch.int64 and labels.bincount(minlength=10).tolist() == [each] * 10
    assert labels[:100].unique().numel() == 10, "classes are mixed, so that a prefix is a fair part"
    assert pictures.float().mean() > 50 and images.FASHION_MNIST_LABELS[9] == "ankle boot"


def test_shipped_files_are_intact_and_small():
    sums = dict(reversed(line.split()) for line in (images.SHIPPED / "SHA256SUMS").read_text().splitlines())
    assert sums == {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in images.SHIPPED.glob("*.gz")}
    assert len(sums) == 4 and sum(p.stat().st_size for p in images.SHIPPED.iterdir()) < 1.6e6
    assert "Zalando SE" in (images.SHIPPED / "LICENSE").read_text()


def full_is_here():
    dataset = registry.get("fashion_mnist")
    return all(store.find(dataset, file.name) for file in dataset.files)


def test_the_whole_and_its_part():
    if not full_is_here():
        pytest.skip("FULL FASHION-MNIST NOT TESTED: it is not here (Debian: dataset-fashion-mnist)")
    made = make_fashion_subset.contents()
    for name, content in made.items():
        assert gzip.decompress((images.SHIPPED / name).read_bytes()) == content
    for split, number in (("train", 60_000), ("test", 10_000)):
        pictures, labels = images.fashion_mnist(split)  # "auto" takes the whole
        assert pictures.shape == (number, 28, 28) and labels.bincount().tolist() == [number // 10] * 10
        known = {picture.numpy().tobytes(): label for picture, label in zip(pictures, labels, strict=True)}
        for picture, label in zip(*images.fashion_mnist(split, "shipped"), strict=True):
            assert known[picture.numpy().tobytes()] == label, "the part comes from its own split"


@pytest.fixture
def fashion(folders, monkeypatch):
    """The set without its system folder: what a machine sees that has nothing."""
    dataset = dataclasses.replace(registry.get("fashion_mnist"), system_folders=())
    monkeypatch.setitem(registry.SETS, "fashion_mnist", dataset)
    return folders


def test_auto_falls_back_but_never_on_a_damaged_file(fashion):
    assert len(images.fashion_mnist("test")[0]) == 1_000
    with pytest.raises(DataError, match="not on this machine"):
        images.fashion_mnist("test", "full", download=False)
    (fashion / "one" / "t10k-images-idx3-ubyte.gz").write_bytes(gzip.compress(b"other"))
    with pytest.raises(DataError, match="one/t10k-images"):
        images.fashion_mnist("test")


def test_wrong_words():
    with pytest.raises(ValueError, match="split is 'valid', expected 'train' or 'test'"):
        images.fashion_mnist("valid")
    with pytest.raises(ValueError, match="subset is 'all', expected 'auto', 'full' or 'shipped'"):
        images.fashion_mnist(subset="all")


def test_read_idx(tmp_path):
    path = tmp_path / "a.gz"
    array = torch.arange(24, dtype=torch.uint8).view(2, 3, 4)
    good = make_fashion_subset.idx(array)
    path.write_bytes(gzip.compress(good))
    assert torch.equal(images.read_idx(path), array)
    packed = gzip.compress(good)
    for content, message in [
        (packed[:-9], "cut off or not a gzip file"),
        (good, "cut off or not a gzip file"),
        (gzip.compress(b"\x00\x00\x0d" + good[3:]), "no idx file of bytes: it starts with 00000d03"),
        (gzip.compress(b""), "no idx file of bytes"),
        (gzip.compress(good[:-1]), r"unpacks to 39 bytes, shape \(2, 3, 4\) in its header to 40"),
        (gzip.compress(good + b"x"), "unpacks to 41 bytes"),
        (gzip.compress(good[:7]), "unpacks to 7 bytes"),
    ]:
        path.write_bytes(content)
        with pytest.raises(DataError, match=message):
            images.read_idx(path)
    with pytest.raises(DataError, match=r"cannot be read \(Is a directory\)"):
        images.read_idx(tmp_path)
    with pytest.raises(DataError, match=r"a\.gz does not exist"):
        images.read_idx(tmp_path / "none" / "a.gz")


def test_labels_that_do_not_fit(tmp_path, monkeypatch):
    monkeypatch.setattr(images, "SHIPPED", tmp_path)
    names = images.fashion_mnist_files("test")
    blank = torch.zeros(3, 28, 28)
    for pictures, labels in [(blank, [0, 1]), (blank, [0, 1, 10]), (blank[:, :9], [0, 0, 0])]:
        for name, array in zip(names, (pictures, torch.tensor(labels)), strict=True):
            (tmp_path / name).write_bytes(gzip.compress(make_fashion_subset.idx(array)))
        with pytest.raises(DataError, match=r"expected \(N, 28, 28\) and \(N,\) with labels below 10"):
            images.fashion_mnist("test", "shipped")


def test_checksums():
    shipped = images.fashion_mnist_checksums("shipped")
    assert len(shipped) == 4 and all(re.fullmatch("[0-9a-f]{64}", value) for value in shipped.values())
    name = "train-images-idx3-ubyte.gz"
    assert images.fashion_mnist_checksums("full")[f"fashion_mnist/{name}"].startswith("c59f468a")
    assert (
        shipped[f"fashion_mnist_shipped/{name}"]
        == hashlib.sha256(gzip.decompress((images.SHIPPED / name).read_bytes())).hexdigest()
    )


# ---- texts

NOVEL = """Title page

*** START OF THIS PROJECT GUTENBERG EBOOK A NOVEL ***

Produced by Someone and
Another

A NOVEL

It began.

End of Project Gutenberg's A Novel, by Nobody

*** END OF THIS PROJECT GUTENBERG EBOOK A NOVEL ***

licence
"""


def test_strip_gutenberg():
    assert text.strip_gutenberg(NOVEL) == "A NOVEL\n\nIt began."
    assert text.strip_gutenberg(NOVEL.replace("*** END OF THIS", "***END OF THE")) == "A NOVEL\n\nIt began."
    with pytest.raises(ValueError, match=r"expected one .*START.* and one END, not"):
        text.strip_gutenberg(NOVEL.replace("*** END", "END"))


def register(monkeypatch, folders, name, files):
    (folders / "one" / name).mkdir()
    for file, content in files.items():
        (folders / "one" / name / file).write_bytes(content)
    described = tuple(DataFile(f, hashlib.sha256(c).hexdigest(), len(c)) for f, c in files.items())
    monkeypatch.setitem(registry.SETS, name, dataclasses.replace(registry.get(name), files=described))


def test_load_text(folders, monkeypatch):
    novel = NOVEL.replace("\n", "\r\n").encode()
    register(monkeypatch, folders, "gutenberg", {"11.txt": novel, "35.txt": novel.replace(b"It", b"All")})
    register(monkeypatch, folders, "tinyshakespeare", {"input.txt": "Où?\n".encode()})
    register(monkeypatch, folders, "wikitext2", {"train.txt": b"a", "valid.txt": b"b", "test.txt": b"c"})
    assert text.load_text("gutenberg", 35) == "A NOVEL\n\nAll began."
    assert text.load_text("gutenberg") == "A NOVEL\n\nIt began.\n\n\nA NOVEL\n\nAll began."
    assert text.load_text("tinyshakespeare") == "Où?\n"
    assert [text.load_text("wikitext2", part) for part in ("train", "valid", "test")] == ["a", "b", "c"]
    for name, part in [("gutenberg", 3), ("wikitext2", None), ("tinyshakespeare", "test"), ("times", None)]:
        with pytest.raises(ValueError, match=f"no text '{name}' with part {part!r}, expected"):
            text.load_text(name, part)


def test_book_text(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "BOOK", tmp_path / "book.txt")
    with pytest.raises(DataError, match=r"book\.txt does not exist: `make sync`"):
        text.book_text()
    Path(text.BOOK).write_bytes(b"Caf\xe9")
    with pytest.raises(DataError, match=r"book\.txt cannot be read as UTF-8 text"):
        text.book_text()
    Path(text.BOOK).write_text("\nOne\nparagraph.\n\n \n\nAnother.\n", encoding="utf-8")
    assert text.book_text() == ["One\nparagraph.", "Another."]
    assert text.load_text("book") == "One\nparagraph.\n\nAnother."
