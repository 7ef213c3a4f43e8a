"""What the experiments on pictures share: batches by steps, the recipe, and what is written down."""

from dataclasses import fields, replace

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from d2lmini.__main__ import main
from d2lmini.data.images import fashion_mnist
from d2lmini.experiments import data_size, vision_cnn, vision_d2l, vision_davit, vision_swin, vision_vit
from d2lmini.experiments.vision import classification
from d2lmini.lab import runner

CPU = torch.device("cpu")
CONFIG = replace(vision_vit.PRESETS["smoke"], num_train=30, batch_size=20, steps=9, checks=3)


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def test_an_epoch_has_the_asked_steps_of_full_batches():
    plain = replace(CONFIG, shift=0, flip=0.0, erase=0.0)
    batches = list(classification.Pictures(plain, CPU).train_dataloader())
    assert [len(X) for X, _ in batches] == [20, 20, 20]
    seen = torch.cat([X for X, _ in batches]).flatten(1)
    assert [len(part.unique(dim=0)) for part in seen.split(30)] == [30, 30]  # all once, then all again
    assert len(classification.Pictures(replace(plain, num_train=None), CPU).train) == 2000


def test_labels_are_smoothed_in_training_alone():
    learner, scores, labels = classification.Learner(nn.Linear(2, 10), CONFIG), torch.randn(4, 10), torch.arange(4)
    smooth = F.one_hot(labels, 10) * 0.9 + 0.01
    torch.testing.assert_close(learner.loss(scores, labels), F.cross_entropy(scores, smooth))
    torch.testing.assert_close(learner.loss(scores, smooth), F.cross_entropy(scores, smooth * 0.9 + 0.01))
    torch.testing.assert_close(learner.eval().loss(scores, labels), F.cross_entropy(scores, labels))


def test_weights_alone_decay():
    net = vision_vit.make(CONFIG)
    decaying, free = classification.Learner(net, CONFIG).configure_optimizers().param_groups
    assert decaying["weight_decay"] == CONFIG.weight_decay and free["weight_decay"] == 0
    names = {id(p): name for name, p in net.named_parameters()}
    assert all(names[id(p)].endswith("weight") and ".ln" not in names[id(p)] for p in decaying["params"])
    assert {"cls_token", "pos_embedding", "patch_embedding.conv.bias", "blks.0.ln1.weight"} <= {
        names[id(p)] for p in free["params"]
    }
    assert len(decaying["params"]) + len(free["params"]) == len(names)


@pytest.mark.slow
def test_what_is_measured_is_what_the_network_does():
    torch.manual_seed(3)
    net = vision_vit.make(CONFIG)
    found = classification.train(net, CONFIG, CPU, seed=3, say=None)
    images, labels = fashion_mnist("test", "shipped")
    right = net.eval()(images[:, None] / 255).argmax(1) == labels
    metrics, curves = found["metrics"], found["curves"]
    assert metrics["accuracy"] == pytest.approx(right.double().mean().item(), abs=1e-9)
    assert metrics["by_class"]["bag"] == pytest.approx(right[labels == 8].double().mean().item())
    assert metrics["steps"] == 9 and metrics["epochs"] == 6 and metrics["train_images"] == 30
    assert curves["val_step"] == [3, 6, 9] and curves["val_acc"][-1] == pytest.approx(metrics["accuracy"])
    assert len(curves["step"]) == len(curves["train_loss"]) == 9


def test_spread():
    assert classification.say_accuracy([0.94, 0.95]) == "accuracy 94.50 % (± 0.71 over 2 seeds)"


@pytest.mark.train
def test_two_seeds_are_two_runs():
    found = classification.run(
        vision_vit.make, replace(CONFIG, seeds=(0, 1)), CPU, lambda net, data: {"kept": len(data.val)}
    )
    metrics = found["metrics"]
    assert metrics["loss"][0] != metrics["loss"][1] and metrics["kept"] == 1000
    assert metrics["mean"] == sum(metrics["accuracy"]) / 2
    assert found["curves"]["val_acc"][-1] == pytest.approx(metrics["accuracy"][0])


def test_what_the_class_token_looks_at():
    net, data = vision_vit.make(CONFIG), classification.Pictures(CONFIG, CPU)
    looked = vision_vit.look(net, data, 3)["look"]
    attention = torch.tensor(looked["class_attention"])
    assert looked["grid"] == [2, 2] and attention.shape == (3, CONFIG.num_blks, CONFIG.num_heads, 4)
    assert attention.min() >= 0 and attention.sum(-1).max() < 1  # the rest goes to the class token
    assert torch.tensor(looked["rollout"]).shape == (3, 4)
    similar = torch.tensor(looked["position_similarity"])
    assert torch.equal(similar, similar.T) and (similar.diag() == 1).all()
    assert looked["label"] == data.val.labels[:3].tolist()


def test_the_full_presets_are_what_they_claim():
    assert vision_vit.make(vision_vit.PRESETS["full"]).num_parameters <= 3_000_000
    counts = [data_size.make(name, data_size.PRESETS["full"]).num_parameters for name in data_size.NETWORKS]
    assert abs(counts[0] / counts[1] - 1) < 0.05
    d2l = vision_d2l.PRESETS["full"]
    assert (d2l.img_size, d2l.patch_size, d2l.lr, d2l.max_epochs) == (96, 16, 0.1, 10)
    assert (d2l.num_hiddens, d2l.mlp_num_hiddens, d2l.num_heads, d2l.num_blks) == (512, 2048, 8, 2)
    assert (d2l.emb_dropout, d2l.blk_dropout, d2l.batch_size) == (0.1, 0.1, 128)


def test_the_laptop_presets_are_one_recipe_for_networks_of_one_size():
    modules = vision_vit, vision_cnn, vision_swin, vision_davit
    own = {"lr", "seeds"}
    recipes = [
        {f.name: getattr(m.PRESETS["laptop"], f.name) for f in fields(classification.Recipe) if f.name not in own}
        for m in modules
    ]
    assert all(recipe == recipes[0] for recipe in recipes) and recipes[0]["subset"] == "full"
    assert recipes[0]["steps"] * recipes[0]["batch_size"] >= 10 * 60_000
    sizes = [m.make(m.PRESETS["laptop"]).num_parameters for m in modules]
    assert max(sizes) < 1.05 * min(sizes)
    small, other = data_size.PRESETS["laptop"], vision_vit.PRESETS["laptop"]  # chapter 10 sets one beside the other
    assert small.lr == other.lr and small.resnet_lr == vision_cnn.PRESETS["laptop"].lr
    assert data_size.make("vit", small).num_parameters == vision_vit.make(other).num_parameters


@pytest.fixture
def two_seeds(monkeypatch):
    """`vision_cnn` whose smoke preset has two seeds; a list of the training steps that were begun; a function that
    kills the run at one of them."""
    monkeypatch.setitem(vision_cnn.PRESETS, "smoke", replace(vision_cnn.PRESETS["smoke"], seeds=(0, 1)))
    begun, last = [], []

    def training_step(self, batch, original=classification.Learner.training_step):
        begun.append(len(begun))
        if last and len(begun) == last[0]:
            last.clear()
            raise KeyboardInterrupt
        return original(self, batch)

    monkeypatch.setattr(classification.Learner, "training_step", training_step)
    return begun, last.append


@pytest.mark.train
def test_a_killed_run_goes_on_and_ends_with_the_same_record(two_seeds, tmp_path):
    begun, kill_at = two_seeds
    whole = runner.execute(vision_cnn, "smoke", "cpu")
    begun.clear()
    kill_at(8 + 6)  # in the second seed, after its first check
    with pytest.raises(KeyboardInterrupt):
        runner.execute(vision_cnn, "smoke", "cpu", checkpoint=tmp_path / "run")
    begun.clear()
    resumed = runner.execute(vision_cnn, "smoke", "cpu", checkpoint=tmp_path / "run")
    assert len(begun) == 4  # neither the first seed nor the second seed's first half is trained again
    for name in ("accuracy", "loss", "by_class", "steps"):
        assert resumed["metrics"][name] == whole["metrics"][name], name
    assert {k: resumed["curves"][k] for k in ("train_loss", "val_acc")} == {
        k: whole["curves"][k] for k in ("train_loss", "val_acc")
    }
    assert resumed["wall_s"] > sum(resumed["metrics"]["train_s"])  # the time before the kill counts


@pytest.mark.train
def test_checkpoints_of_another_configuration_or_damaged_are_refused(two_seeds, tmp_path, capsys, monkeypatch):
    words = ["run", "vision_cnn", "--preset", "smoke", "--device", "cpu", "--out", str(tmp_path)]
    words += ["--checkpoint", str(tmp_path / "run")]
    assert main([*words, "--max-minutes", "1e-9"]) == 75
    with monkeypatch.context() as other:
        other.setitem(vision_cnn.PRESETS, "smoke", replace(vision_cnn.PRESETS["smoke"], lr=0.5))
        assert main(words) == 1
        assert "was made with another configuration:\n  config.lr: 0.001 in" in capsys.readouterr().err
    (weights,) = (tmp_path / "run" / "seed-0").glob("*/weights.safetensors")
    weights.write_bytes(b"no weights")
    assert main(words) == 1
    assert "weights.safetensors is not what SHA256SUMS says" in capsys.readouterr().err
