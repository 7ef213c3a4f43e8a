"""Every benchmark runs at tiny sizes, its record has its form, and only what can be repeated is kept."""

import functools
import importlib.util
import json
import math
import re
import subprocess
import sys

import pytest
import torch

from benchmarks import (
    ON_GPU,
    OTHERS,
    SUITE,
    __main__,
    _d2l,
    _onnx,
    attention,
    book,
    challenges,
    cost,
    decoding,
    grading,
    learning,
    live,
    live_peers,
    real_model,
    training,
    translation,
)
from benchmarks import utilization as of_gpu
from benchmarks._common import contest, in_turns, main
from d2lmini import results
from d2lmini.exercises.grading.sandbox import why_not
from d2lmini.lab import records as lab_records
from d2lmini.models.weights import files, smollm2
from tests.conftest import CHROMIUM, ROOT
from tools import _chart, _in_page, _learning, measured
from tools._bars import BARS, MET, MISSED, NOT, Bar

MODULES = {
    "attention": attention,
    "training": training,
    "translation": translation,
    "decoding": decoding,
    "cost": cost,
    "utilization": of_gpu,
    "grading": grading,
}
IN_PAGE = {
    "live": live,
    "live_peers": live_peers,
    "learning": learning,
    "challenges": challenges,
}  # these drive Chromium


def leaves(value):
    if isinstance(value, dict):
        return [x for part in value.values() for x in leaves(part)]
    return [x for part in value for x in leaves(part)] if isinstance(value, list) else [value]


def test_contestants_take_turns_in_alternating_order():
    order = []
    seconds = in_turns({name: lambda name=name: order.append(name) for name in "ab"}, rounds=4, least=0)
    assert order[-8:] == list("baabbaab") and all(len(of) == 4 for of in seconds.values())


def test_slow_calls_have_fewer_rounds():
    def slow():
        torch.ones(1_000_000).sin().sum()

    assert len(in_turns({"ours": slow}, rounds=40, least=0, most=0.001)["ours"]) == 3


def test_a_contest_has_medians_spread_and_memory():
    big = {"ours": lambda: torch.ones(1000), "peer": lambda: torch.rand(5000, 5).sort(0)}
    found = contest("work", big, training.QUICK, unit="tokens", work=10, T=7)
    assert found["T"] == 7 and found["rounds"] == training.QUICK.rounds
    ours, peer = found["contestants"]["ours"], found["contestants"]["peer"]
    assert ours["seconds"] == sorted(ours["seconds"]) and len(peer["ratio"]) == 3 and "ratio" not in ours
    assert ours["per_second"] == pytest.approx(10 / ours["seconds"][1], rel=0.01)
    assert ours["peak_bytes"] == 4000 < peer["peak_bytes"] and peer["ratio"][1] < 1
    with pytest.raises(ValueError, match="the contestants are peer, expected 'ours' among them"):
        contest("work", {"peer": lambda: None}, training.QUICK, unit="tokens", work=1)


def load(folder, name):
    return json.loads((folder / f"benchmark_{name}.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    """A function from the name of a benchmark to the record of a tiny run, which is made once."""

    @functools.cache
    def record(name):
        module, folder = MODULES[name], tmp_path_factory.mktemp(name)
        main(name, module.measure, None, module.QUICK, ["--quick", "--out", str(folder)], gpu=name != "grading")
        return load(folder, name)

    return record


@pytest.fixture
def records(record, tmp_path, monkeypatch):
    """All of them, where the page looks for its own."""
    monkeypatch.setattr(results, "FOLDER", tmp_path / "records")
    results.FOLDER.mkdir()
    for name in MODULES:
        if name != "grading" or not why_not():
            (results.FOLDER / f"benchmark_{name}.json").write_text(json.dumps(record(name)), encoding="utf-8")
    return results.FOLDER


@pytest.mark.slow
@pytest.mark.parametrize("name", SUITE)
def test_a_record_says_where_and_when(record, name):
    found = dict(record(name))
    for fact in ("source", "versions", "device", "config", "benchmark", "command", "date", "wall_s"):
        assert found.pop(fact)
    numbers = [x for x in leaves(found) if isinstance(x, (int, float)) and not isinstance(x, bool)]
    assert numbers and all(math.isfinite(x) for x in numbers)


@pytest.mark.slow
def test_a_benchmark_of_attention(record):
    contests = record("attention")["contests"]
    cases = {(of["subject"], of["case"]) for of in contests if of["T"] == 8}
    assert {case for subject, case in cases if subject == "attention"} == {"no mask", "causal", "mask", "valid_lens"}
    assert {case for subject, case in cases if subject != "attention"} == {"no mask", "causal", "valid_lens"}
    for of in contests:
        peers = {"SDPA", "D2L's formula"} if of["subject"] == "attention" else {"nn.MultiheadAttention"}
        assert set(of["contestants"]) == {"ours", *peers}
    long = [(of["case"], of["way"]) for of in contests if of["T"] == 16]
    assert long == [("no mask", "forward and backward"), ("causal", "forward and backward")] * 2


@pytest.mark.slow
@pytest.mark.skipif(bool(why_not()), reason=f"NO SANDBOX HERE, NOT TRIED: {why_not()}")
def test_a_benchmark_of_grading(record):
    (found,) = record("grading")["classes"].values()
    assert found["other_than_wanted"] == [] and sum(found["verdicts"].values()) == found["answers"] == 15
    assert {"passed", "wrong"} <= set(found["verdicts"])


@pytest.mark.slow
def test_a_benchmark_of_training(record):
    found = {of["model"]: of for of in record("training")["contests"]}
    assert set(found) == {"transformer", "vit", "gpt", "bert"} and found["vit"]["unit"] == "images"
    d2l = "D2L's formulation" if _d2l.published() is None else "d2l"
    assert set(found["transformer"]["contestants"]) == {"ours", d2l, "nn.Transformer"}
    for name in ("vit", "gpt", "bert"):
        assert {"ours", "transformers"} <= set(found[name]["contestants"])


def test_contestants_have_as_many_weights():
    """But for biases, which `nn.Transformer` has in attention and ours, as D2L's, has not."""
    shape = (11, 8, 8, 2, 1, 0.0)
    plain = _d2l.PlainTransformer(*shape)
    torchs = training.TorchTransformer(*shape)
    matrices = [sum(p.numel() for p in model.parameters() if p.dim() > 1) for model in (plain, torchs)]
    assert matrices[0] == matrices[1]


def test_d2ls_package_is_loaded_without_what_it_imports_in_vain(tmp_path, monkeypatch):
    folder = tmp_path / "d2l"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "torch.py").write_text("import torchvision\nfrom IPython import display\nfound = torchvision.datasets\n")
    for name in ("d2l", "d2l.torch", "torchvision"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(_d2l, "_is_there", lambda name: name not in ("torchvision", "torchvision.transforms"))
    assert _d2l.published().found is not None
    assert "torchvision" not in sys.modules  # nobody else is to take the stand-in for it
    monkeypatch.delitem(sys.modules, "d2l")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert _d2l.published() is None
    assert _d2l.transformer(11, 8, 8, 2, 1, 0.0)[0] == "D2L's formulation"


@pytest.mark.slow
def test_a_benchmark_of_translation_and_of_decoding(record):
    works = [of["what"] for of in record("translation")["contests"]]
    assert works == ["translation, greedy search", "translation, beam search of 4"]
    contests = record("decoding")["contests"]
    assert len(contests) == 2 * 2 and all(of["same"] for of in contests)
    assert set(contests[0]["contestants"]) == {"ours", "ours, without the copy", "transformers"}


@pytest.mark.slow
def test_a_benchmark_of_cost(record):
    curves = {(of["kind"], of["variable"]): of for of in record("cost")["curves"]}
    exponents = {key: of["formula_exponent"] for key, of in curves.items()}
    assert exponents["attention", "T"] == 2 and exponents["attention", "D"] == 1
    assert exponents["linear attention", "T"] == 1 and exponents["linear attention", "D"] == 2
    assert exponents["window", "T"] == exponents["window", "D"] == exponents["encoder blocks", "L"] == 1
    assert 1 < exponents["self-attention layer", "T"] < 2


def test_the_slope_of_a_power_is_its_exponent():
    assert cost.slope([1, 2, 4, 8], [3 * x**1.5 for x in (1, 2, 4, 8)]) == 1.5


@pytest.mark.slow
def test_utilization_is_of_the_measured_rate(record):
    found = record("utilization")
    seconds = found["contests"][0]["contestants"]["ours"]["seconds"][1]
    assert found["utilization"] == pytest.approx(found["flops"] / seconds / found["matrix_flops"], abs=0.001)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_utilization_is_not_measured_without_a_gpu(device, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit):
        main(
            "utilization",
            lambda *args: pytest.fail("measured"),
            None,
            None,
            ["--out", str(tmp_path), "--device", device],
            "only",
        )
    assert ("needs a GPU" if device == "cpu" else "torch finds no GPU here") in capsys.readouterr().err


@pytest.mark.slow
def test_decoders_that_write_other_tokens_are_not_compared(monkeypatch):
    monkeypatch.setattr(decoding, "for_decoding", lambda model: decoding.GPT(model.config).eval())
    with pytest.raises(AssertionError, match="they do not write the same"):
        decoding.measure(decoding.QUICK)


def test_the_plain_transformer_is_d2ls_and_as_large_as_ours():
    torch.manual_seed(0)
    plain = _d2l.PlainTransformer(11, 8, 6, 2, 1, 0.0).eval()
    ours = training.Seq2Seq(
        training.TransformerEncoder(11, 8, 6, 2, 1), training.TransformerDecoder(11, 8, 6, 2, 1), tgt_pad=0, lr=1e-3
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
    src, tgt, lens = torch.randint(11, (3, 4)), torch.randint(11, (3, 5)), torch.tensor([4, 1, 2])
    torch.testing.assert_close(plain(src, tgt, lens), ours(src, tgt, lens))


def test_a_record_is_written_where_it_is_told(tmp_path, capsys):
    sizes = attention.Sizes()
    main("attention", lambda sizes, device: {"found": sizes.lengths}, sizes, attention.QUICK, ["--out", str(tmp_path)])
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
        (["--quick"], False, "tiny sizes are no measurement"),
    ],
)
def test_what_cannot_be_repeated_is_not_kept(arguments, dirty, message, monkeypatch, capsys):
    monkeypatch.setattr(lab_records, "source", lambda: {"commit": "a", "dirty": dirty})
    with pytest.raises(SystemExit):
        main("attention", lambda *args: pytest.fail("measured"), None, None, arguments)
    assert message in capsys.readouterr().err


@pytest.mark.slow
def test_the_page_shows_every_contest(record, records, tmp_path, monkeypatch):
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    empty = measured.page()
    for name in SUITE:
        assert f"Not measured: `python -m benchmarks.{name}` was not run" in empty
    assert "No benchmark was run yet" in empty and "<svg" not in empty
    monkeypatch.setattr(results, "FOLDER", records)
    page = measured.page()
    for name in ("attention", "training", "translation", "decoding"):
        for of in record(name)["contests"]:
            for whose, found in of["contestants"].items():
                assert f"| {of['what']} | {whose} | {found['per_second']:,.4g} {of['unit']} |" in page
    for of in record("cost")["curves"]:
        assert f"| {of['formula_exponent']:.2f} | {of['measured_exponent']:.2f} |" in page
    labels = re.findall(r'<svg [^>]*aria-label="([^"]+)"', page)
    assert len(labels) == page.count("<svg") == 3 and all(len(label) > 20 for label in labels)
    assert not re.search(r"<figure(?:(?!</figure>).)*\n\n", page, re.S), "an empty line ends HTML in Markdown"
    behind = page.split("## Where ours is behind")[1].split("## ")[0]
    assert any(verdict == MISSED for verdict, _ in (bar.judge() for bar in BARS)) == ("Why, is not" in behind)
    assert "no GPU could be had" in page and record("attention")["date"][:10] in measured.when()
    assert measured.when() in page


def test_the_page_lists_every_experiment():
    page = measured.page()
    for name, _ in results.recorded():
        (record,) = results.largest(name)
        told = record["metrics"]["headline"].split(" | ")  # a bar would begin another cell
        assert f"| `{name}` | `{record['preset']}` | {len(record['seeds'])} | {'; '.join(told)} |" in page


def test_bars_are_judged_by_the_worst_contest(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "FOLDER", tmp_path)

    def record(*ratios, versions=()):
        contests = [
            {"what": f"work {i}", "kind": "a", "contestants": {"ours": {}, "peer": {"ratio": ratio}}}
            for i, ratio in enumerate(ratios)
        ]
        text = json.dumps({"contests": contests, "versions": dict(versions)})
        (tmp_path / "benchmark_x.json").write_text(text, encoding="utf-8")

    equal, half = Bar("", "x", ("peer",)), Bar("", "x", ("peer",), 0.5)
    assert equal.judge() == (NOT, "`python -m benchmarks.x` was not run")
    assert equal.judge("cuda") == (NOT, "no GPU could be had")
    record([0.9, 0.95, 1.1], [0.99, 1.02, 1.1])
    assert equal.judge() == (MET, "2 of 2; at worst 1.02 (0.99 to 1.10): work 1")
    record([0.9, 0.95, 1.1], [1.01, 1.02, 1.1])
    assert equal.judge()[0] == MISSED and "1 of 2" in equal.judge()[1]
    assert equal.behind() == [("work 1", [1.01, 1.02, 1.1])]
    record([0.9, 1.06, 1.1])
    assert equal.judge()[0] == MISSED  # a wide spread is no excuse
    record([0.4, 0.51, 0.6])
    assert half.judge()[0] == MISSED  # a number to reach is to be reached by the median
    stranger = Bar("", "x", ("timm",), wants="timm")
    record([1, 1, 1], versions={"timm": None})
    assert stranger.judge() == (NOT, "`timm` was not installed")
    assert Bar("", "x", ("peer",), where={"kind": "b"}).judge() == (NOT, "the record has no such contest")
    (tmp_path / "benchmark_x.json").write_text('{"work": {}}', encoding="utf-8")
    assert equal.judge()[0] == NOT  # a record of another form


@pytest.mark.slow
def test_every_bar_finds_its_contests(records):
    reasons = {bar.text: bar.judge()[1] for bar in BARS if isinstance(bar, Bar) and bar.judge()[0] == NOT}
    at_full_size = {"... twice as fast at 512 tokens", "Decoding 32 sequences 1.5 times as fast", "... as `timm`'s"}
    assert set(reasons) <= at_full_size, reasons


def test_the_list_names_all_and_a_stranger_is_refused(capsys, monkeypatch):
    monkeypatch.setattr(__main__.subprocess, "run", lambda *args: pytest.fail("started"))
    __main__.main([])
    listed = capsys.readouterr().out
    assert all(f"\n{name}" in f"\n{listed}" for name in (*SUITE, *OTHERS))
    with pytest.raises(SystemExit):
        __main__.main(["attention", "atention"])
    assert "there is no benchmark atention, only attention" in capsys.readouterr().err


def test_all_are_run_in_turn_and_a_failure_is_told(monkeypatch):
    started = []

    class Done:
        returncode = 0

    def run(words):
        started.append(words[2:])
        done = Done()
        done.returncode = int("benchmarks.training" in words)
        return done

    monkeypatch.setattr(__main__.subprocess, "run", run)
    with pytest.raises(SystemExit, match="not measured: training"):
        __main__.main(["all", "--quick", "--out", "x", "--device", "cuda"])
    assert started == [[f"benchmarks.{name}", "--quick", "--out", "x", "--device", "cuda"] for name in ON_GPU]


@pytest.mark.parametrize(("series", "message"), [({}, "positive"), ({"a": [(1, 0)]}, "positive")])
def test_a_chart_needs_what_has_a_logarithm(series, message):
    with pytest.raises(ValueError, match=message):
        _chart.lines("alt", series, "x", "y")
    with pytest.raises(ValueError, match="6 lines"):
        _chart.lines("alt", {name: [(1, 1)] for name in "abcdef"}, "x", "y")


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")
@pytest.mark.skipif("translator_grammar" not in files.names(), reason="the weights are not exported")
def test_a_benchmark_of_live_models(tmp_path):
    # a process of its own: in this one another test may drive Chromium
    subprocess.run([sys.executable, "-m", "benchmarks.live", "--quick", "--out", str(tmp_path)], check=True, cwd=ROOT)
    (found,) = load(tmp_path, "live")["models"]
    assert found["model"] == "translator_grammar" and found["unit"] == "tokens"
    assert all(found[key] > 0 for key in ("plain", "with_attention", "first_output_s", "MB"))


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")
@pytest.mark.skipif(not smollm2.is_there(), reason="the weights of SmolLM2 are not installed")
def test_a_benchmark_of_the_real_model(tmp_path):
    subprocess.run(
        [sys.executable, "-m", "benchmarks.real_model", "--quick", "--out", str(tmp_path)], check=True, cwd=ROOT
    )
    found = load(tmp_path, "real_model")
    assert found["bytes"] < found["memory"] and found["load_s"] > 0 and found["load_pause_ms"] > 0
    assert all(found[name][what]["per_second"][1] > 0 for name in real_model.WORK for what in ("reading", "writing"))


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")
def test_a_benchmark_of_learning_and_one_of_challenges(tmp_path, monkeypatch):
    for name in ("learning", "challenges"):
        subprocess.run(
            [sys.executable, "-m", f"benchmarks.{name}", "--quick", "--out", str(tmp_path)], check=True, cwd=ROOT
        )
    found = load(tmp_path, "learning")
    assert len(found["speed"]) == len(learning.WORK) and all(of["per_second"][1] > 0 for of in found["speed"])
    assert found["equality"]["gradients"] < 1e-4 and found["equality"]["losses"] < 1e-3
    of = load(tmp_path, "challenges")["challenges"]
    assert list(of) == list(challenges.QUICK.names)
    assert of["induction"]["runs"]["two blocks"][0]["head"] > 0 and "extra" in of["longer"]["median"]["alibi"]
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    page = measured.page().split(f"## {_learning.TITLE}")[1]
    assert "| 32 | 16 of 16 | relu | learned | 150 |" in page and "| 0 of 1 | After 1,000 steps" in page


def test_learning_is_told_of_only_where_it_was_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    assert measured.learning_part() == [] and _learning.TITLE not in measured.page()


def test_the_heaviest_pages_are_those_of_a_built_book(tmp_path):
    with pytest.raises(FileNotFoundError, match="`make book` makes it"):
        book.largest(tmp_path, 1)
    for name, size in (("index", 5), ("a", 50), ("b", 10)):
        (tmp_path / f"{name}.html").write_text("x" * size)
    assert book.largest(tmp_path, 2) == ["a.html", "b.html"]


@pytest.mark.parametrize("name", [*MODULES, *IN_PAGE])
def test_what_is_recorded_is_of_a_clean_tree_and_of_these_sizes(name):
    path = results.FOLDER / f"benchmark_{name}.json"
    if not path.exists():
        pytest.skip(f"python -m benchmarks.{name} was not run yet")
    record = json.loads(path.read_text(encoding="utf-8"))
    assert record["source"]["dirty"] is False
    assert record["config"] == results.as_json((MODULES | IN_PAGE)[name].Sizes())


def in_page(name, ours=1.0, same=6, **ratios):
    """A record of `live_peers` with one peer."""
    quartiles = {key: [1.0, 1.0, 1.0] for key in live_peers.MEASURED}
    shared = {**quartiles, "per_second": 500.0, "bytes": {"a": 2000}, "gzipped": {"a": 1000}}
    found = {key: [x, x, x] for key, x in (dict.fromkeys(live_peers.MEASURED, 0.5) | ratios).items()}
    contestants = {
        "ours": {**shared, "same": 6, "bytes": {"a": 1000 * ours}},
        name: {**shared, "same": same, "ratio": found},
    }
    facts = {"browser": "Chromium 1", "run": "a run", "versions": {"torch": "2"}, "device": {"name": "a machine"}}
    return {"config": {"count": 6}, "contestants": contestants, "date": "2026-01-01T", "command": "c", **facts}


def test_the_page_tells_of_models_in_the_page_where_that_was_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    costs = {"a": {"kind": "int8", "before": {"BLEU": 50.0}, "after": {"BLEU": 49.9}, "bytes": 2_000_000}}
    costs["a"] |= {"lost_points": {"int8": 0.1}, "parameters": 1_900_000, "experiment": "e", "preset": "p"}
    (tmp_path / _in_page.ROUNDING).write_text(json.dumps(costs), encoding="utf-8")
    assert "| `a` | e p | 1.90 | 2.00 | int8 | BLEU | 50 | 49.9 | 0.10 |" in measured.page()
    assert len(measured.in_page_part()) == 2
    (tmp_path / "benchmark_live_peers.json").write_text(json.dumps(in_page("peer")), encoding="utf-8")
    page = measured.page()
    assert f"## {_in_page.TITLE}\n" in page and "Ours is ahead in all of it." in page
    widths = {line.count("|") for line in _in_page.table(in_page("peer"), measured._range).split("\n")}
    assert widths == {len(_in_page.HEAD) + 1}


def test_where_a_model_in_the_page_is_behind_is_told():
    told = _in_page.verdict(in_page("peer", ours=3.0, same=4, warm=1.25))
    assert "behind in the time a character takes, 1.25 times that of peer; bytes to load, 1.50 times" in told
    assert "ahead" not in told and "but peer after 4 characters another one" in told


@pytest.fixture(scope="module")
def quick_peers(tmp_path_factory, chromium):
    """A function that gives what is found at tiny sizes, with or without the peers."""

    def quick_peers(peers):
        return live_peers.compare(chromium, tmp_path_factory.mktemp("page"), live_peers.QUICK, peers)

    return quick_peers


def same_as_python(found, name):
    of = found["contestants"][name]
    assert of["same"] == live_peers.QUICK.count
    assert set(live_peers.MEASURED) <= set(of) and all(of[key][0] >= 0 for key in live_peers.MEASURED)
    return of


@pytest.mark.slow
def test_ours_writes_in_the_page_what_python_writes(quick_peers):
    found = quick_peers(peers=False)
    of = same_as_python(found, "ours")
    assert set(of["bytes"]) == {"_static/live/runtime.js", "_static/live/tiny.js", "host.js, in the page"}
    assert len(set(found["text"])) > 1  # else any model that says one thing would do


def test_without_the_network_the_peers_are_not_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(_onnx, "cache_folder", lambda: tmp_path)
    assert not _onnx.is_here()
    monkeypatch.setattr(_onnx.shutil, "which", lambda name: None)
    with pytest.raises(SystemExit, match="not measured: onnxruntime-web cannot be had: there is no npm"):
        live_peers.measure(live_peers.QUICK)
    monkeypatch.setattr(_onnx.shutil, "which", lambda name: "false")  # a command that fails
    with pytest.raises(SystemExit, match="not measured: onnxruntime-web cannot be had: no reason given"):
        live_peers.measure(live_peers.QUICK)


@pytest.mark.slow
@pytest.mark.skipif(not _onnx.is_here(), reason="NO ONNXRUNTIME-WEB HERE, NOT TRIED: python -m benchmarks.live_peers")
def test_the_peer_writes_in_the_page_what_python_writes(quick_peers):
    found = quick_peers(peers=True)
    for name in live_peers.PEERS:
        of = found["contestants"][name]
        assert set(_onnx.BACKEND) < set(of["bytes"]) and set(of["ratio"]) == set(live_peers.MEASURED)
    same_as_python(found, live_peers.FLOAT)


def test_each_experiment_is_one_row_of_the_table():
    head, _, *rows = measured.experiments_table().splitlines()
    assert rows and {row.count("|") for row in rows} == {head.count("|")}
