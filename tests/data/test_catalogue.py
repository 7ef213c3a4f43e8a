"""Each entry of the catalogue says what its files are, and where they are here they are that."""

import os
import re

import pytest

from d2lmini.data import catalogue, registry, store

REAL = [name for name in registry.SETS if any((f / name).is_dir() for f in store.data_folders())]


@pytest.mark.parametrize("name", list(catalogue.SETS))
def test_entry(name):
    dataset = catalogue.SETS[name]
    assert dataset.name == name and re.fullmatch(r"[a-z0-9_]+", name)
    assert dataset.title and dataset.licence and dataset.citation and dataset.pitfalls and dataset.files
    assert len({file.name for file in dataset.files}) == len(dataset.files)
    for file in dataset.files:
        assert re.fullmatch("[0-9a-f]{64}|[0-9a-f]{40}", file.hash) and file.size > 0
        assert file.content in ("", "gzip") or file.content.startswith("zip:")
        assert file.urls or name in (
            "wikitext2_train_reordered",
            "debian_reference",
            "all_minilm_l6_v2",
            "smollm2_135m",
        )
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
