"""Every benchmark runs at tiny sizes, its record has its form, and only what can be repeated is kept."""

import json
import math
from dataclasses import replace

import pytest
import torch

from benchmarks import attention, decoding, grading, models
from benchmarks._common import in_turns, main, ratios
from d2lmini import results
from d2lmini.exercises.grading.sandbox import why_not
from d2lmini.experiments import runner
from tools import pages

MODULES = {"attention": attention, "models": models, "decoding": decoding, "grading": grading}


def leaves(value):
    if isinstance(value, dict):
        return [x for part in value.values() for x in leaves(part)]
    return [x for part in value for x in leaves(part)] if isinstance(value, list) else [value]


def test_contestants_take_turns_in_alternating_order():
    order = []
    calls = {name: lambda name=name: order.append(name) for name in ("ours", "a", "b")}
    found = ratios(calls, replace(models.SMOKE, rounds=2))
    assert set(found) == {"a", "b"} and all(ratio > 0 for ratio in found.values())
    order.clear()
    seconds = in_turns({name: lambda name=name: order.append(name) for name in "ab"}, rounds=4, least=0)
    assert order[4:] == list("baabbaab") and all(len(of) == 4 for of in seconds.values())


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """The folder of the records of tiny runs."""
    folder = tmp_path_factory.mktemp("records")
    for name, module in MODULES.items():
        if name == "grading" and why_not():
            continue
        main(name, module.measure, None, module.SMOKE, ["--smoke", "--out", str(folder)])
    return folder


def load(records, name):
    return json.loads((records / f"benchmark_{name}.json").read_text(encoding="utf-8"))


def test_a_benchmark_of_attention(records):
    found = load(records, "attention")
    for fact in ("source", "versions", "device", "config", "benchmark", "command", "date"):
        assert found.pop(fact)
    assert all(math.isfinite(x) and x > 0 for x in leaves(found))
    assert set(found["function"]) == {"no mask", "causal", "mask", "valid_lens"} == set(found["extra_bytes"])
    for case, peers in found["function"].items():
        assert set(peers) == {"sdpa", "d2l"}, case
    assert set(found["module"]) == {"no mask", "causal", "valid_lens"}
    for peers in [*found["function"].values(), *found["module"].values()]:
        assert all({way: len(x) for way, x in of.items()} == {"forward": 2, "both": 2} for of in peers.values())


@pytest.mark.skipif(bool(why_not()), reason=f"NO SANDBOX HERE, NOT TRIED: {why_not()}")
def test_a_benchmark_of_grading(records):
    (found,) = load(records, "grading")["classes"].values()
    assert found["other_than_wanted"] == [] and sum(found["verdicts"].values()) == found["answers"] == 15
    assert {"passed", "wrong"} <= set(found["verdicts"])


def test_a_benchmark_of_models(records):
    work = load(records, "models")["work"]
    assert len(work) == 4 and all(x > 0 for x in leaves(work))


def test_a_benchmark_of_decoding(records):
    work = load(records, "decoding")["work"]
    assert len(work) == 2 * 2 * 2 and all(x > 0 for x in leaves(work))
    assert {name.rsplit(", ", 1)[1] for name in work} == {"the model", "its copy"}


def test_decoders_that_write_other_tokens_are_not_compared(monkeypatch):
    monkeypatch.setattr(decoding, "for_decoding", lambda model: decoding.GPT(model.config).eval())
    with pytest.raises(AssertionError, match="they do not write the same"):
        decoding.measure(decoding.SMOKE)


def test_the_plain_transformer_is_d2ls_and_as_large_as_ours():
    torch.manual_seed(0)
    plain = models.PlainTransformer(11, 8, 6, 2, 1, 0.0).eval()
    ours = models.Seq2Seq(
        models.TransformerEncoder(11, 8, 6, 2, 1), models.TransformerDecoder(11, 8, 6, 2, 1), tgt_pad=0, lr=1e-3
    ).eval()
    assert sum(p.numel() for p in ours.parameters()) == sum(p.numel() for p in plain.parameters())
    copies = {
        "encoder.embedding": "embeddings.0",
        "decoder.embedding": "embeddings.1",
        "encoder.blks.0.attention": "encoder.0.attentions.0",
        "encoder.blks.0.addnorm1.ln": "encoder.0.sublayers.0.norm",
        "encoder.blks.0.ffn.dense1": "encoder.0.ffn.0",
        "encoder.blks.0.ffn.dense2": "encoder.0.ffn.2",
        "encoder.blks.0.addnorm2.ln": "encoder.0.sublayers.1.norm",
        "decoder.blks.0.attention1": "decoder.0.attentions.0",
        "decoder.blks.0.addnorm1.ln": "decoder.0.sublayers.0.norm",
        "decoder.blks.0.attention2": "decoder.0.attentions.1",
        "decoder.blks.0.addnorm2.ln": "decoder.0.sublayers.1.norm",
        "decoder.blks.0.ffn.dense1": "decoder.0.ffn.0",
        "decoder.blks.0.ffn.dense2": "decoder.0.ffn.2",
        "decoder.blks.0.addnorm3.ln": "decoder.0.sublayers.2.norm",
        "decoder.dense": "dense",
    }
    for one, other in copies.items():
        plain.get_submodule(other).load_state_dict(ours.get_submodule(one).state_dict())
    source, target, lens = torch.randint(11, (3, 4)), torch.randint(11, (3, 5)), torch.tensor([4, 1, 2])
    torch.testing.assert_close(plain(source, target, lens), ours(source, target, lens))


def test_a_record_is_written_where_it_is_told(tmp_path, capsys):
    sizes = attention.Sizes()
    main("attention", lambda sizes: {"found": sizes.lengths}, sizes, attention.SMOKE, ["--out", str(tmp_path)])
    path = tmp_path / "benchmark_attention.json"
    assert capsys.readouterr().out.strip() == str(path)
    record = json.loads(path.read_text())
    assert record["found"] == list(sizes.lengths) and record["command"] == "python -m benchmarks.attention"
    assert record["device"]["threads"] == 1 and {"commit", "dirty"} <= set(record["source"])
    assert "transformers" in record["versions"]


@pytest.mark.parametrize(
    ("arguments", "dirty", "message"),
    [
        ([], True, "files that differ from the commit are no measurement"),
        ([], None, "files that differ from the commit are no measurement"),
        (["--smoke"], False, "tiny sizes are no measurement"),
    ],
)
def test_what_cannot_be_repeated_is_not_kept(arguments, dirty, message, monkeypatch, capsys):
    monkeypatch.setattr(runner, "_source", lambda: {"commit": "a", "dirty": dirty})
    with pytest.raises(SystemExit):
        main("attention", lambda sizes: pytest.fail("measured"), None, None, arguments)
    assert message in capsys.readouterr().err


def test_the_table_of_the_readme_shows_every_ratio(records, tmp_path, monkeypatch):
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    assert "python -m benchmarks.attention" in pages.peers_table()
    monkeypatch.setattr(results, "FOLDER", records)
    table, found = pages.peers_table(), load(records, "attention")
    for case, peers in found["function"].items():
        for of in peers.values():
            cells = " | ".join(f"{a:.2f} / {b:.2f}" for a, b in zip(of["forward"], of["both"], strict=True))
            assert f"| {cells} |" in table, case
    whole = {**load(records, "models")["work"], **load(records, "decoding")["work"]}
    assert table.count("\n| ") == 2 + 4 * 2 + 3 + len(whole) - 1
    for work, peers in whole.items():
        assert all(f"| {work} | {peer} | {ratio:.2f} |" in table for peer, ratio in peers.items())


@pytest.mark.parametrize("name", MODULES)
def test_what_is_recorded_is_of_a_clean_tree_and_of_these_sizes(name):
    path = results.FOLDER / f"benchmark_{name}.json"
    if not path.exists():
        pytest.skip(f"python -m benchmarks.{name} was not run yet")
    record = json.loads(path.read_text(encoding="utf-8"))
    assert record["source"]["dirty"] is False
    assert record["config"] == results.as_json(MODULES[name].Sizes())
