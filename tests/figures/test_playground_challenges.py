"""The challenges of the playground: their links set the page, and their record holds what they promise."""

import dataclasses
import re

import pytest

from d2lmini.figures.playground.challenges import CHALLENGES, recorded
from tools.bundles import bundled

READ = """address => {
  const { settings, unknown } = live.settingsOf(address);
  return [unknown, live.addressOf(settings)];
}"""


@pytest.fixture(scope="module")
def settings_page(chromium):
    page = chromium.new_page()
    code = bundled('export * from "./live/playground_settings.js";', "live")
    page.evaluate("code => { window.live = new Function(code)(); }", f"{code}\nreturn live;")
    yield page
    page.close()


@pytest.fixture(scope="module")
def record():
    found = recorded()
    if found is None:
        pytest.skip("python -m benchmarks.challenges was not run yet")
    return found


def test_names_are_unique_and_fit_into_an_address():
    names = [challenge.name for challenge in CHALLENGES]
    assert len(set(names)) == len(names) == 6
    assert all(re.fullmatch(r"[a-z-]+", name) for name in names)


@pytest.mark.parametrize("challenge", CHALLENGES, ids=lambda of: of.name)
def test_addresses_are_read_without_rest_and_differ(challenge, settings_page):
    read = [settings_page.evaluate(READ, address) for address in challenge.addresses.values()]
    assert all(unknown == [] for unknown, _ in read)
    assert len({address for _, address in read}) == len(read)


@pytest.mark.parametrize("challenge", CHALLENGES, ids=lambda of: of.name)
def test_what_is_found_is_in_the_record_and_holds_for_three_seeds_of_four(challenge, record):
    from benchmarks.challenges import PROMISES

    of = record["challenges"][challenge.name]
    assert of["addresses"] == challenge.addresses and of["steps"] == challenge.steps
    assert all(len(runs) == 4 for runs in of["runs"].values())
    hold = [i for i in range(4) if PROMISES[challenge.name]({label: runs[i] for label, runs in of["runs"].items()})]
    assert len(hold) >= 3, f"holds for {len(hold)} of 4 seeds"
    assert "{" not in challenge.found(record) and "nan" not in challenge.found(record)
    exception = f"for {len(hold)} of 4 seeds"
    assert len(hold) == len(of["hold"]) and (exception in challenge.found(record)) == (len(hold) < 4)


def test_without_a_record_nothing_is_told(monkeypatch, tmp_path):
    monkeypatch.setattr("d2lmini.results.FOLDER", tmp_path)
    assert all(challenge.found() is None for challenge in CHALLENGES)


def test_a_number_that_the_record_lacks_is_an_error(record):
    stranger = dataclasses.replace(CHALLENGES[0], find="{found[three blocks][right]}")
    with pytest.raises(KeyError, match="three blocks"):
        stranger.found(record)
