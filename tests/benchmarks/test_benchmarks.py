"""Every benchmark runs at tiny sizes, its record has its form, and only what can be repeated is kept."""

import importlib
import json
import math
import sys
from dataclasses import replace

import pytest
import torch

from benchmarks import attention, decoding, grading, growth, plain, training, translation, utilization
from benchmarks._common import compared, in_turns, main, ratios
from d2lmini import results
from d2lmini.exercises.grading.sandbox import why_not
from d2lmini.experiments import runner
from tools import measured

MODULES = {
    "attention": attention,
    "training": training,
    "translation": translation,
    "decoding": decoding,
    "growth": growth,
    "grading": grading,
}


def leaves(value):
    if isinstance(value, dict):
        return [x for part in value.values() for x in leaves(part)]
    return [x for part in value for x in leaves(part)] if isinstance(value, list) else [value]


def test_contestants_take_turns_in_alternating_order():
    order = []
    calls = {name: lambda name=name: order.append(name) for name in ("ours", "a", "b")}
    found = ratios(calls, replace(translation.SMOKE, rounds=2))
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
    assert set(found["function"]) == {"no mask", "causal", "mask", "valid_lens"}
    assert set(found["extra_bytes"]) == {"3", "8", "16"} and set(found["long"]) == {"causal"}
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


def test_a_benchmark_of_training(records):
    found = load(records, "training")
    peers = {work: set(of) for work, of in found["work"].items()}
    assert peers.pop("Transformer, 3 tokens") == {"D2L's formulation", "nn.Transformer"}
    assert peers.pop("ViT") == {"transformers' ViT"} and peers.pop("GPT, 5 tokens") == {"transformers' GPT-2"}
    assert peers.pop("BERT, 5 tokens") == {"transformers' BERT"} and set(peers) <= {"Transformer's encoder, 3 tokens"}
    for of in (of for work in found["work"].values() for of in work.values()):
        assert 0 < of["low"] <= of["time"] <= of["high"] and of["memory"] > 0
    assert all(x > 0 for x in found["per_s"].values())


def test_peers_that_compute_something_else_are_not_compared(monkeypatch):
    monkeypatch.setattr(training, "load_transformers_gpt2", lambda model, state: model)
    with pytest.raises(AssertionError, match="not close"):
        training.gpt_steps(training.SMOKE)


def test_stand_ins_are_gone_afterwards(tmp_path, monkeypatch):
    (tmp_path / "needy.py").write_text("import nowhere.at.all\nfrom nowhere import thing\nassert callable(thing)\n")
    monkeypatch.syspath_prepend(tmp_path)
    with training.stand_ins("nowhere.at.all", "json"):
        importlib.import_module("needy")
    assert "nowhere" not in sys.modules and json.loads("1") == 1
    with pytest.raises(ImportError):
        importlib.import_module("nowhere")


def test_a_benchmark_of_translation(records):
    work = load(records, "translation")["work"]
    assert len(work) == 2 and all(x > 0 for x in leaves(work))


def test_a_benchmark_of_growth(records):
    found = {(of["way"], of["grows"]): of for of in load(records, "growth")["growth"]}
    assert set(found) == set(growth.FORMULAS)
    assert found["formula", "length"]["work"] == 2 and found["linear", "length"]["work"] == 1
    assert found["formula", "width"]["work"] == 1  # counted, so exact at any size


def test_quartiles_of_ratios():
    assert compared([2, 4, 6, 8, 10], [2, 2, 2, 2, 2]) == {"time": 3, "low": 2, "high": 4}
    assert compared([3], [2]) == {"time": 1.5, "low": 1.5, "high": 1.5}


def test_utilization_divides_two_rates():
    found = utilization.measure(utilization.SMOKE, "cpu")
    assert found["utilization"] == pytest.approx(found["flops_per_s"] / found["matrix_flops_per_s"])
    tokens = utilization.SMOKE.batch * utilization.SMOKE.model.max_len
    done = utilization.gpt_training_flops(utilization.SMOKE.model, tokens)
    assert found["flops_per_s"] == pytest.approx(done / found["step_s"])


@pytest.mark.gpu
def test_utilization_of_a_gpu():
    assert 0.2 < utilization.measure(replace(utilization.Sizes(), rounds=5), "cuda")["utilization"] < 1


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
    copy = plain.PlainTransformer(11, 8, 6, 2, 1, 0.0).eval()
    ours = training.Seq2Seq(
        training.TransformerEncoder(11, 8, 6, 2, 1), training.TransformerDecoder(11, 8, 6, 2, 1), tgt_pad=0, lr=1e-3
    ).eval()
    assert sum(p.numel() for p in ours.parameters()) == sum(p.numel() for p in copy.parameters())
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
        copy.get_submodule(other).load_state_dict(ours.get_submodule(one).state_dict())
    source, target, lens = torch.randint(11, (3, 4)), torch.randint(11, (3, 5)), torch.tensor([4, 1, 2])
    torch.testing.assert_close(copy(source, target, lens), ours(source, target, lens))


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


def test_the_tables_show_every_ratio(records, tmp_path, monkeypatch):
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    for name in ("attention", "growth", "book"):
        assert f"python -m benchmarks.{name}" in getattr(measured, f"{name}_table")()
    assert "python -m benchmarks.training" in measured.models_table()
    assert {verdict for *_, verdict in measured.bars()} == {"not measured"}
    monkeypatch.setattr(results, "FOLDER", records)
    table, found = measured.attention_table(), load(records, "attention")
    for case, peers in found["function"].items():
        for peer, of in peers.items():
            of = {way: of[way] + (found["long"][case][peer][way] if case in found["long"] else []) for way in of}
            cells = " | ".join(f"{a:.2f} / {b:.2f}" for a, b in zip(of["forward"], of["both"], strict=True))
            assert f"| {cells} |" in table, case
    table = measured.models_table()
    for work, peers in load(records, "training")["work"].items():
        for peer, of in peers.items():
            assert f"| training step, {work} | {peer} | {of['time']:.2f} | " in table
    for name in ("translation", "decoding"):
        for work, peers in load(records, name)["work"].items():
            assert all(f"| {work} | {peer} | {ratio:.2f} |" in table for peer, ratio in peers.items())
    assert all(f"| {of['work']:.2f} |" in measured.growth_table() for of in load(records, "growth")["growth"])


def test_each_bar_is_judged(records, tmp_path, monkeypatch):
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    attention_record, training_record = load(records, "attention"), load(records, "training")
    flat = {case: {peer: {"forward": [1.0, 1.0], "both": [1.0, 1.0]} for peer in of}
            for case, of in attention_record["function"].items()}  # fmt: skip
    module = {"causal": {"nn.MultiheadAttention": {"forward": [0.9, 0.9], "both": [0.9, 0.9]}}}
    attention_record |= {"function": flat, "module": module, "long": {}}
    of = {"time": 1.02, "low": 0.99, "high": 1.1, "memory": 1.0}
    training_record["work"] = {"X": {"a": of, "b": {**of, "low": 1.01}, "c": {**of, "time": 0.9}},
                               "T, 512 tokens": {"D2L's formulation": {**of, "time": 0.6, "low": 0.55}}}  # fmt: skip
    for name, record in (("attention", attention_record), ("training", training_record)):
        (tmp_path / f"benchmark_{name}.json").write_text(json.dumps(record))
    found = {asked: verdict for asked, _, verdict in measured.bars()}
    assert found["attention at most 1.05 of torch's fused kernel"] == "met"
    assert found["step of X, at most 1 of a"] == "within the spread" and found["step of X, at most 1 of b"] == "missed"
    assert found["step of X, at most 1 of c"] == "met"
    assert found["step of T, 512 tokens, at most 0.5 of D2L's formulation"] == "missed"
    flat["causal"]["sdpa"]["both"][1] = 1.06
    (tmp_path / "benchmark_attention.json").write_text(json.dumps(attention_record))
    (said, verdict), *_ = [(said, verdict) for asked, said, verdict in measured.bars() if "1.05" in asked]
    assert verdict == "missed" and "causal, forward and backward at 8 tokens" in said


@pytest.mark.parametrize("name", MODULES)
def test_what_is_recorded_is_of_a_clean_tree_and_of_these_sizes(name):
    path = results.FOLDER / f"benchmark_{name}.json"
    if not path.exists():
        pytest.skip(f"python -m benchmarks.{name} was not run yet")
    record = json.loads(path.read_text(encoding="utf-8"))
    assert record["source"]["dirty"] is False
    assert record["config"] == results.as_json(MODULES[name].Sizes())


def test_the_book_is_measured_where_there_is_one_at_a_commit(tmp_path, monkeypatch):
    book = pytest.importorskip("benchmarks.book")
    monkeypatch.setattr(book, "ROOT", tmp_path)
    with pytest.raises(SystemExit, match="there is no book"):
        book.main()
    page = tmp_path / "_build" / "html" / book.figure_start.PAGE
    page.parent.mkdir(parents=True)
    page.write_text("a page")
    monkeypatch.setattr(book.runner, "_source", lambda: {"commit": "a", "dirty": True})
    with pytest.raises(SystemExit, match="commit first"):
        book.main()


def test_the_table_of_the_book_names_its_heaviest_page(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    pages = {"01_light": {"kB": 300.0, "requests": 20}, "02_heavy": {"kB": 900.0, "requests": 31}}
    found = {"pages": pages, "build_s": 300.0, "figure_s": 2.04, "device": {"name": "a machine"}, "date": "2026-01-02T"}
    (tmp_path / "benchmark_book.json").write_text(json.dumps(found))
    table = measured.book_table()
    assert (
        "| built, all 2 chapters executed | 5.0 min |" in table
        and "`02_heavy`, first visit | 900 kB in 31 req" in table
    )
    assert ("the book built in under 8 minutes", "5.0 min", "met") in measured.bars()
    (tmp_path / "benchmark_book.json").write_text(json.dumps({**found, "build_s": None}))
    assert ("the book built in under 8 minutes", "", "not measured") in measured.bars()


def test_quality_stands_beside_published_recipes():
    table = measured.quality_table()
    small = results.load("gpt_shakespeare", "cpu")["metrics"]
    assert f"| {small['crops'][0]:.3f} | " in table and f"| {small['rival']['crops']:.3f} | " in table
    assert table.count("\n") == 5
