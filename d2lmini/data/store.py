"""Find the files of a data set on this machine, or download them; a damaged file is never used.

Looked for in this order: each folder in ``$D2LMINI_DATA`` (several, separated as in ``$PATH``; a file may lie
in a sub-folder named after its set or in the folder itself), the cache (``$D2LMINI_CACHE``, else the place
where the system keeps a user's caches, or temporary files for a user without a home folder), the folders where systems
keep such sets, and installed Python packages.
"""

import gzip
import hashlib
import importlib.util
import os
import shutil
import tempfile
import time
import zipfile
import zlib
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISDIR

import pooch

from ..shell import folder_of_user

_CHUNK = 1 << 20
_PARTIAL = ".partial-"
_verified = set()  # (path, size, mtime, DataFile) of what this process has read and found right


class DataError(OSError):
    """A data file is missing, damaged, or could not be fetched; the message says what to do."""


@dataclass(frozen=True)
class DataFile:
    """One file of a data set.

    Args:
        name: its name on disk.
        hash: SHA-256 (64 hexadecimal digits), or the git blob id (40) where only that is known.
        size: in bytes.
        urls: addresses that serve it, the best first; none if it can only be put there by hand.
        content: what ``hash`` and ``size`` speak of: ``""`` the file itself, ``"gzip"`` what it unpacks to,
            ``"zip:NAME"`` the member called NAME in whatever folder. Archives differ where content does not.
    """

    name: str
    hash: str
    size: int
    urls: tuple = ()
    content: str = ""


@dataclass(frozen=True)
class DataSet:
    """A named set of files, its licence (and who asks for it), how to cite it, and what to beware of.

    ``spdx`` names, as SPDX does, the licence under which parts of it and what was trained on it may be passed on; None:
    they may not.
    """

    name: str
    title: str
    licence: str
    citation: str
    files: tuple
    pitfalls: str = ""
    system_folders: tuple = ()
    other_names: tuple = ()  # further names of its sub-folder
    packages: tuple = ()  # folders inside of Python packages, as "package/folder"
    spdx: str | None = None

    def file(self, name):
        """The `DataFile` called `name`.

        Raises:
            ValueError: there is none.
        """
        for file in self.files:
            if file.name == name:
                return file
        raise ValueError(f"{self.name} has no file {name!r}, only {', '.join(f.name for f in self.files)}")


def data_folders():
    """The folders named by ``$D2LMINI_DATA``, as a list of paths."""
    return [Path(os.path.expanduser(part)) for part in os.environ.get("D2LMINI_DATA", "").split(os.pathsep) if part]


def cache_folder():
    """The folder of downloads: ``$D2LMINI_CACHE``, else ``d2lmini`` among the user's caches, or temporary files."""
    if chosen := os.environ.get("D2LMINI_CACHE"):
        return Path(os.path.expanduser(chosen))
    return folder_of_user(lambda: pooch.os_cache("d2lmini")) or Path(tempfile.gettempdir(), "d2lmini")


def candidates(dataset):
    """Every folder where files of `dataset` are looked for, in order."""
    names = (dataset.name, *dataset.other_names)
    own = [folder / name for folder in data_folders() for name in (*names, "")]
    return [*own, cache_folder() / dataset.name, *map(Path, dataset.system_folders), *_in_packages(dataset)]


def _in_packages(dataset):
    for folder in dataset.packages:
        package, _, inside = folder.partition("/")
        spec = importlib.util.find_spec(package)  # found, not imported
        for place in (spec and spec.submodule_search_locations) or ():
            yield Path(place) / inside


@contextmanager
def _content(path, file):
    """Open what the hash of `file` speaks of."""
    if file.content.startswith("zip:"):
        with zipfile.ZipFile(path) as archive:
            wanted = file.content.removeprefix("zip:")
            member = next((m for m in archive.namelist() if m.rsplit("/", 1)[-1] == wanted), None)
            if member is None:
                raise zipfile.BadZipFile(f"no {wanted} inside")
            with archive.open(member) as stream:
                yield stream
    else:
        with gzip.open(path) if file.content == "gzip" else open(path, "rb") as stream:
            yield stream


def problem(path, file):
    """Compare a file with what it should be. Found right, it is not read again while it stays unchanged.

    Args:
        path: where it lies.
        file: the `DataFile` that it should be.

    Returns:
        None if it is right, else a str that says what was expected and what found.
    """
    try:
        return _difference(path, file)
    except OSError as error:
        return _unreadable(error)


def _unreadable(error):
    return f"it cannot be read ({error.strerror or error})"


def _difference(path, file):
    stat = path.stat()
    if S_ISDIR(stat.st_mode):
        return "it is a folder, expected a file"
    key = (str(path), stat.st_size, stat.st_mtime_ns, file)
    if key in _verified:
        return None
    kind = "SHA-256" if len(file.hash) == 64 else "git blob id"
    expected = f"{file.size:,} bytes with {kind} {file.hash}"
    unpacked = f", unpacked ({file.content})" if file.content else ""
    if not file.content and stat.st_size != file.size:
        return f"it has {stat.st_size:,} bytes, expected {expected}"
    digest, size = hashlib.sha256(), 0
    if kind != "SHA-256":
        digest = hashlib.sha1(b"blob %d\0" % file.size, usedforsecurity=False)
    try:
        with _content(path, file) as stream:
            while chunk := stream.read(_CHUNK):
                digest.update(chunk)
                size += len(chunk)
    except (EOFError, gzip.BadGzipFile, zipfile.BadZipFile, zlib.error, RuntimeError) as error:  # zipfile: encrypted
        return f"it is cut off or no such archive ({error}), expected{unpacked} {expected}"
    if size != file.size or digest.hexdigest() != file.hash:
        return f"it has{unpacked} {size:,} bytes with {kind} {digest.hexdigest()}, expected {expected}"
    _verified.add(key)
    return None


def _first(dataset, file):
    """(path, problem) of the first file of that name on this machine; (None, None) where there is none."""
    for folder in candidates(dataset):
        path = folder / file.name
        try:
            path.stat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:  # a folder that may not be entered
            return path, _unreadable(error)
        return path, problem(path, file)
    return None, None


def find(dataset, name):
    """Look for a file on this machine, and verify it. Never downloads.

    Args:
        dataset: a `DataSet`.
        name: of one of its files.

    Returns:
        Path, or None where the file is nowhere.

    Raises:
        DataError: the first one found is not what it should be. It is neither used nor touched.
        ValueError: the set has no such file.
    """
    path, wrong = _first(dataset, dataset.file(name))
    if wrong:
        raise DataError(_damaged(dataset, path, wrong))
    return path


def obtain(dataset, name, download=True):
    """Give a verified file, downloading it into the cache where it is nowhere on this machine.

    A damaged file in the cache is set aside under another name once a good one has come. Several processes
    may ask at once: each downloads to a place of its own, and the finished file appears in one step.

    Args:
        dataset: a `DataSet`.
        name: of one of its files.
        download: False to look on this machine alone.

    Returns:
        Path of the file.

    Raises:
        DataError: it is not here and could not be fetched, or it is damaged, or the cache cannot be written.
        ValueError: the set has no such file.
    """
    file = dataset.file(name)
    path, wrong = _first(dataset, file)
    if path and not wrong:
        return path
    if wrong and not (download and path == _cached(dataset, file)):
        raise DataError(_damaged(dataset, path, wrong))
    failures = [wrong and f"{path}: {wrong}"]
    if download:
        got = _download(dataset, file, failures)
        if got:
            return got
    raise DataError(_missing(dataset, file, [failure for failure in failures if failure]))


def _cached(dataset, file):
    return cache_folder() / dataset.name / file.name


def _damaged(dataset, path, wrong):
    if path.parent == cache_folder() / dataset.name and dataset.file(path.name).urls:
        cure = f"`python -m d2lmini data --fetch {dataset.name}` sets it aside and fetches it again"
    else:
        cure = "replace it, or move it out of the way"
    return f"{path} is not the {path.name} of {dataset.name}: {wrong}; {cure}"


def _missing(dataset, file, failures):
    tried = " and could not be fetched" if failures else ""
    lines = [f"{file.name} of {dataset.name} is not on this machine{tried}."]
    lines += [f"  {failure}" for failure in failures]
    if file.urls:
        lines += ["Get it from", *(f"  {url}" for url in file.urls)]
    else:
        lines.append(f"No address serves it: {dataset.pitfalls}")
    lines.append(f"and put it, under the name {file.name}, into one of")
    lines += [f"  {folder}" for folder in dict.fromkeys(candidates(dataset))]
    if not data_folders():
        lines.append("or into a folder of your own that the environment variable D2LMINI_DATA names.")
    return "\n".join(lines)


def _download(dataset, file, failures):
    """Fetch a file into the cache; what went wrong is added to `failures`. Returns: its path, or None."""
    final = _cached(dataset, file)
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        _sweep(final.parent)
        # on the same disk, so that the finished file can be renamed into place
        partial = tempfile.TemporaryDirectory(prefix=_PARTIAL, dir=final.parent)
    except OSError as error:
        raise _unwritable(final, error) from error
    with partial as folder:
        half = Path(folder) / file.name
        for url in file.urls:
            try:
                pooch.HTTPDownloader(progressbar=True, timeout=30)(url, str(half), None)
                wrong = problem(half, file)
            except (OSError, ValueError) as error:  # requests' errors are OSErrors
                wrong = _told(error)
            if wrong is None:
                try:
                    if os.path.lexists(final) and problem(final, file):
                        os.replace(final, final.with_name(f"{file.name}.damaged-{time.time_ns()}"))
                    os.replace(half, final)
                except OSError as error:
                    raise _unwritable(final, error) from error
                return final
            failures.append(f"{url}: {wrong}")
    return None


def _told(error):
    import requests

    if type(error) in (requests.ConnectionError, requests.ConnectTimeout):  # their text is a page about sockets
        error = type(error)("the host cannot be reached, or stopped answering; is there a network?")
    return f"{type(error).__name__}: {error}"


def _unwritable(final, error):
    return DataError(
        f"the cache folder {final.parent} cannot be written ({error.strerror}): set D2LMINI_CACHE to one "
        f"that can, or put {final.name} into a folder that D2LMINI_DATA names"
    )


def _sweep(folder):
    """Remove what downloads that were killed left behind more than a day ago."""
    for left in folder.glob(f"{_PARTIAL}*"):
        if time.time() - left.stat().st_mtime > 86400:
            shutil.rmtree(left, ignore_errors=True)
