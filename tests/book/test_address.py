"""An edition has its address in `_config.yml` alone: `make sync` writes it wherever else it is named."""

import pytest
from conftest import ROOT

from tools import pages, site

URL = "https://github.com/Some-One/an-edition"
PLACES = "*.*", "pages/*", "d2lmini/**/*.py", "tools/**/*.*", ".github/**/*.yml"
TEXTS = [path for place in PLACES for path in ROOT.glob(place)]


@pytest.fixture
def moved(monkeypatch):
    """The address is another one. Returns: the links of before."""
    before = site.repository()["url"], site.address(), site.colab("").rstrip("/").rstrip("/")
    monkeypatch.setattr(site, "repository", lambda: {"url": URL, "branch": "main"})
    monkeypatch.setattr(site, "address", lambda: "https://some-one.github.io/an-edition/")
    return before


def test_every_file_that_names_the_address_is_written_anew(moved):
    texts = {path: path.read_text(encoding="utf-8", errors="ignore") for path in TEXTS if path.is_file()}
    named = {path.relative_to(ROOT).as_posix() for path, text in texts.items() if any(link in text for link in moved)}
    assert "README.md" in named and named - {"_config.yml"} <= {*pages.sync(check=True)}


def test_what_is_written_anew_has_the_new_address(moved, monkeypatch):
    written = {}
    monkeypatch.setattr(pages, "put", lambda path, text, check: written.update({path.name: text}) or [])
    pages.sync(check=False)
    for name in ("README.md", "CITATION.cff", "accessibility.md", "licences.md", "registry.py"):
        assert URL.removeprefix("https://") in written[name].replace("research.google.com/github/", "github.com/")
        assert not any(link in written[name] for link in moved), name
    assert max(map(len, written["registry.py"].splitlines())) <= 120


@pytest.mark.parametrize("end", ["", "/", ".git"])
def test_an_address_may_be_copied_with_what_stands_at_its_end(tmp_path, monkeypatch, end):
    (tmp_path / "_config.yml").write_text(f"repository: {{url: {URL}{end}, branch: main}}\nhtml: {{}}")
    monkeypatch.setattr(site, "ROOT", tmp_path)
    site.repository.cache_clear()
    try:
        assert site.archive() == f"{URL}/archive/refs/tags/v{site.VERSION}.zip"
        assert site.colab("a.ipynb").endswith("/github/Some-One/an-edition/blob/main/a.ipynb")
        assert site.address() == "https://some-one.github.io/an-edition/"
    finally:
        site.repository.cache_clear()
