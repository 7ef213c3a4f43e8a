"""Checkpoints: a run killed at any moment goes on to the same losses; what is not its checkpoint is refused."""

import json
import pickle
import random
import resource
import time
from contextlib import contextmanager

import pytest
import torch
from safetensors.torch import load_file, save_file
from toy_line import Points, fit
from toy_training import Tagger, Tokens, forkserver, run_on, train

from d2lmini.training import CheckpointError, checkpoint

OUTCOME = ("step", "epoch", "train_loss", "lr", "grad_norm", "val_step", "val_epoch", "val_loss", "val_acc")


def outcome(history):
    return {name: history[name] for name in OUTCOME}


@pytest.fixture(scope="module")
def whole():
    """The history of the run that nobody killed."""
    history = outcome(train(None).history)
    assert len(history["train_loss"]) == 30 and len(history["val_loss"]) == 3
    return history


@pytest.fixture(scope="module")
def processes():
    return forkserver()


def continue_and_kill(processes, folder, result, after=None, at=None, pause=0.0):
    """Goes on with a run in a process that is killed after some seconds, or at some call; returns its exit code.

    With ``pause`` it rests so many seconds after every step, so that a fast machine does not get to the end first.
    """
    process = processes.Process(target=run_on, args=(folder, result, at, pause))
    process.start()
    if after is not None:
        deadline = time.monotonic() + 60
        while checkpoint.latest(folder) is None and time.monotonic() < deadline:
            time.sleep(0.002)  # the seconds count from the first checkpoint
        time.sleep(after)
        process.kill()
    process.join(120)
    return process.exitcode


@pytest.mark.train
def test_a_run_killed_at_random_moments_reaches_the_same_losses(processes, whole, tmp_path):
    chance = random.Random(0)
    codes = []
    while not codes or codes[-1] != 0:
        after = chance.uniform(0, 0.3) if len(codes) < 4 else None
        result = tmp_path / "result.json"
        codes.append(continue_and_kill(processes, tmp_path / "run", result, after=after, pause=0.05))
        assert codes[-1] in (0, -9)
    assert codes.count(-9) >= 3
    assert outcome(json.loads((tmp_path / "result.json").read_text())) == whole


@pytest.mark.slow
def test_a_run_killed_while_it_writes_reaches_the_same_losses(processes, whole, tmp_path):
    folder, left = tmp_path / "run", {}
    calls = [("mkdir", 2), ("fsync", 1), ("fsync", 5), ("rename", 1), ("fsync", 6), ("rename", 2)]
    for call in [*calls, ("unlink", 2), ("rmdir", 1), ("unlink", 7)]:
        assert continue_and_kill(processes, folder, tmp_path / "result.json", at=call) == -9, call
        left[call] = sorted(path.name.rstrip("0123456789") for path in folder.iterdir() if path.name != ".lock")
    # before the first one, half-written, two whole ones, and the older one half-removed
    assert left["mkdir", 2] == [] and left["rename", 1] == [".partial-step-"]
    assert left["fsync", 6] == ["step-"] and left["rename", 2] == ["step-", "step-"]
    assert left["unlink", 2] == [".partial-old-step-", "step-", "step-"]
    assert continue_and_kill(processes, folder, tmp_path / "result.json") == 0
    assert outcome(json.loads((tmp_path / "result.json").read_text())) == whole


@pytest.mark.parametrize("options", [{"max_steps": 13}, {"max_seconds": 1e-9}], ids=str)
def test_a_run_that_stopped_inside_of_an_epoch_goes_on(whole, tmp_path, options):
    stopped = train(tmp_path, **options)
    assert stopped.step == options.get("max_steps", 1)
    assert stopped.history["val_epoch"][-1] == stopped.step / 10  # it has a validation loss nevertheless
    assert outcome(train(tmp_path, resume=True).history) == whole


def test_going_on_with_a_finished_run_changes_nothing(whole, tmp_path):
    train(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    again = train(tmp_path, resume=True)
    assert outcome(again.history) == whole and again.model.board.points["val_loss"][1] == whole["val_loss"]
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_a_run_goes_on_for_more_epochs(whole, tmp_path):
    torch.manual_seed(0)
    train(tmp_path, max_steps=10)
    assert outcome(train(tmp_path, resume=True, max_steps=None).history) == whole


def test_early_stopping_is_kept(tmp_path):
    def stop(trainer):
        trainer.should_stop = True

    assert train(tmp_path, callbacks=[stop]).epoch == 1
    assert train(tmp_path, resume=True).epoch == 1


def test_the_weights_are_a_plain_file_with_tied_ones_once(tmp_path):
    trainer = train(tmp_path, max_steps=3)
    (path,) = tmp_path.iterdir()
    weights = load_file(path / "weights.safetensors")
    assert set(weights) == {"net.0.weight", "net.2.weight", "net.2.bias"}
    torch.testing.assert_close(weights["net.0.weight"], trainer.model.net[4].weight.detach(), rtol=0, atol=0)
    resumed = train(tmp_path, resume=True, max_steps=3).model
    assert resumed.net[0].weight is resumed.net[4].weight
    assert torch.equal(resumed.net[4].weight, trainer.model.net[4].weight)


def test_only_the_newest_checkpoint_is_kept(tmp_path):
    train(tmp_path, checkpoint_every=4)
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000030"]


def test_a_checkpoint_is_not_overwritten_unasked(tmp_path):
    train(tmp_path, max_steps=2)
    with pytest.raises(ValueError, match="step-00000002 is the checkpoint of another run: resume=True goes on"):
        train(tmp_path)


def test_another_configuration_is_refused_with_the_difference(tmp_path):
    train(tmp_path, max_steps=2)
    with pytest.raises(CheckpointError) as caught:
        train(tmp_path, Tokens(batch_size=5), {"num_hiddens": 16, "lr": 0.5}, resume=True, accumulate=2)
    lines = str(caught.value).splitlines()[1:]
    assert [line.strip() for line in lines] == [
        "model.lr: 0.01 in the checkpoint, now 0.5",
        "model.num_hiddens: 8 in the checkpoint, now 16",
        "parameters.net.0.weight: '(11, 8)' in the checkpoint, now '(11, 16)'",
        "parameters.net.2.weight: '(8, 8)' in the checkpoint, now '(16, 16)'",
        "parameters.net.2.bias: '(8,)' in the checkpoint, now '(16,)'",
        "parameters.net.4.weight: '(11, 8)' in the checkpoint, now '(11, 16)'",
        "optimizer.lr: 0.01 in the checkpoint, now 0.5",
        "data.batch_size: 4 in the checkpoint, now 5",
        "data.batches: 10 in the checkpoint, now 8",
        "trainer.accumulate: 1 in the checkpoint, now 2",
    ]


@pytest.mark.parametrize("name", ["weights.safetensors", "state.pt", "manifest.json", "SHA256SUMS"])
@pytest.mark.parametrize("damage", ["missing", "cut", "one bit"])
def test_a_damaged_checkpoint_is_an_error_that_names_the_file(tmp_path, name, damage):
    train(tmp_path, max_steps=2)
    (path,) = tmp_path.glob(f"*/{name}")
    content = bytearray(path.read_bytes())
    path.unlink()
    if damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "one bit":
        content[max(map(content.rfind, b"0123456789"))] ^= 1  # a digit stays a digit
        path.write_bytes(content)
    with pytest.raises(CheckpointError, match=name):
        train(tmp_path, resume=True)


@pytest.mark.parametrize("content", ['{"weight_map": {}}', "[1]", '{"format": "d2lmini checkpoint 0"}'])
def test_a_foreign_checkpoint_is_an_error(tmp_path, content):
    (tmp_path / "step-00000007").mkdir()
    (tmp_path / "step-00000007" / "manifest.json").write_text(content)
    with pytest.raises(CheckpointError, match=r"step-00000007 is no checkpoint of this Trainer: its format is"):
        train(tmp_path, resume=True)


def resign(path):
    """Makes the sums of a checkpoint those of what it holds now."""
    (path / "SHA256SUMS").write_text(checkpoint._sums(path))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("state.pt", lambda path: path.write_bytes(pickle.dumps({"optimizer": 1}, protocol=2))),
        ("state.pt", lambda path: torch.save({"model": Tagger()}, path)),
        ("state.pt", lambda path: torch.save({"model": torch.zeros(2)}, path)),
        ("state.pt", lambda path: torch.save([1, 2], path)),
        ("state.pt", lambda path: path.write_bytes(b"no pickle at all")),
        ("weights.safetensors", lambda path: path.write_bytes(b"no safetensors")),
        ("weights.safetensors", lambda path: save_file({"other": torch.zeros(2)}, path)),
        ("manifest.json", lambda path: path.write_text('{"format": "d2lmini checkpoint 1"}')),
        ("manifest.json", lambda path: path.write_text('{"format": "d2lmini checkpoint 1", "progress": [3]}')),
    ],
)
def test_a_file_of_another_program_is_an_error_not_a_traceback_of_it(tmp_path, name, change):
    train(tmp_path, max_steps=3)
    (path,) = tmp_path.iterdir()
    change(path / name)
    resign(path)
    with pytest.raises(CheckpointError, match=r"step-00000003 does not hold what a Trainer writes .*: move the folder"):
        train(tmp_path, resume=True)


def test_a_file_in_the_place_of_a_checkpoint_is_an_error(tmp_path):
    (tmp_path / "step-00000007").write_bytes(pickle.dumps({"weights": 1}))
    with pytest.raises(CheckpointError, match=r"step-00000007 is no checkpoint of a Trainer: manifest\.json cannot be"):
        train(tmp_path, resume=True)


def test_a_checkpoint_under_the_name_of_another_step_is_refused(tmp_path):
    train(tmp_path, max_steps=3)
    (tmp_path / "step-00000003").rename(tmp_path / "step-00000023")
    with pytest.raises(CheckpointError, match="step-00000023 is the checkpoint of step 3 under another name: call it"):
        train(tmp_path, resume=True)
    (tmp_path / "step-00000023").rename(tmp_path / "step-00000003")
    assert train(tmp_path, resume=True, max_steps=4).step == 4


# --- folders that cannot be written ---


class Untouched(Tokens):
    """Data that no run should get as far as."""

    def get_dataloader(self, train):
        pytest.fail("the run began")


def test_a_folder_that_cannot_be_written_is_found_before_training(tmp_path):
    (tmp_path / "file").write_text("mine")
    for folder in (tmp_path / "file", tmp_path / "file" / "below", "/proc/nowhere"):
        with pytest.raises(CheckpointError, match=r"the checkpoint folder .* cannot be written \(.*\): name a folder"):
            train(folder, Untouched())
    assert (tmp_path / "file").read_text() == "mine"


@contextmanager
def largest_file(size):
    """No process of ours can write a file larger than so many bytes: what a full disk does, at that byte."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("name", ["weights.safetensors", "state.pt"])
def test_a_disk_that_is_full_leaves_the_checkpoint_before(tmp_path, whole, name):
    train(tmp_path, max_steps=10)
    (path,) = tmp_path.iterdir()
    content = {file.name: file.read_bytes() for file in path.iterdir()}
    with (
        largest_file(len(content[name]) // 2),
        pytest.raises(CheckpointError, match=r"of step 14 could not be .*: step-00000010 is still there, and resume=T"),
    ):
        train(tmp_path, resume=True, max_steps=14)
    assert list(tmp_path.iterdir()) == [path]
    assert {file.name: file.read_bytes() for file in path.iterdir()} == content
    assert outcome(train(tmp_path, resume=True).history) == whole


def test_a_disk_that_is_full_at_the_first_checkpoint(tmp_path):
    with (
        largest_file(100),
        pytest.raises(CheckpointError, match=r"of step 2 .*: there is none before it; .* MB are free"),
    ):
        train(tmp_path, max_steps=2)
    assert list(tmp_path.iterdir()) == []


# --- one run at a time ---


@pytest.mark.slow
def test_two_runs_in_one_folder_at_a_time_are_refused(processes, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "_PATIENCE", 0.1)
    first = processes.Process(target=run_on, args=(tmp_path, tmp_path / "result.json", None, 0.2))
    first.start()
    deadline = time.monotonic() + 60
    while checkpoint.latest(tmp_path) is None and time.monotonic() < deadline:
        time.sleep(0.01)
    with pytest.raises(CheckpointError, match=r"another run is at work in .*: wait for its end"):
        train(tmp_path, Untouched(), resume=True)
    first.kill()
    first.join()
    done = train(tmp_path, Tokens(pause=0.2), resume=True, max_steps=5)  # the lock of a killed run does not stay
    assert done.step >= 5 and not (tmp_path / ".lock").exists()


def test_a_run_inside_of_a_run_is_refused_too_and_the_folder_is_free_after_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "_PATIENCE", 0.1)
    with pytest.raises(CheckpointError, match="another run is at work"):
        train(tmp_path, callbacks=[lambda trainer: train(tmp_path, resume=True)])
    assert train(tmp_path, resume=True, max_steps=11).step == 11


def test_other_folders_beside_it_are_none_of_its_business(tmp_path):
    for name in ("step-12", "step-abcdefgh", "notes"):
        (tmp_path / name).mkdir()
    assert checkpoint.latest(tmp_path) is None and checkpoint.latest(tmp_path / "nowhere") is None
    train(tmp_path, max_steps=1)
    assert {path.name for path in tmp_path.iterdir()} == {"step-12", "step-abcdefgh", "notes", "step-00000001"}


def test_the_state_of_another_model_is_not_taken_for_ours(tmp_path):
    class Other(Tagger):
        pass

    train(tmp_path, max_steps=1)
    trainer = train(None, max_steps=1)
    trainer.checkpoint, trainer.resume = tmp_path, True
    with pytest.raises(CheckpointError, match=r"model\.class: 'Tagger' in the checkpoint, now 'Other'"):
        trainer.fit(Other(), Tokens())


class Numbers(Tokens):
    """Data whose arguments do not tell them from others."""

    def __init__(self, training=1, validation=2):
        super().__init__()
        self.seeds = {True: training, False: validation}

    def get_dataloader(self, train):
        loader = super().get_dataloader(train)
        loader.dataset.X.add_(self.seeds[train]).remainder_(11)
        return loader


@pytest.mark.parametrize("kind", ["training", "validation"])
def test_other_data_of_the_same_size_are_refused(tmp_path, kind):
    train(tmp_path, Numbers(), max_steps=2)
    train(tmp_path, Numbers(), max_steps=3, resume=True)  # the same
    with pytest.raises(CheckpointError, match=f"step-00000003 was made with other {kind} data of the same size"):
        train(tmp_path, Numbers(**{kind: 3}), resume=True)


def test_one_example_of_a_tensor_data_set_is_enough(tmp_path):
    data = Points()
    fit(data=data, checkpoint=tmp_path)
    data.X[60] += 1e-3
    with pytest.raises(CheckpointError, match="was made with other training data of the same size"):
        fit(data=data, checkpoint=tmp_path, resume=True)


def test_a_checkpoint_that_has_no_digests_goes_on(tmp_path, monkeypatch):
    def older(folder, step, write_weights, state, manifest):
        return write(folder, step, write_weights, state, {k: v for k, v in manifest.items() if k != "digests"})

    write = checkpoint.write
    monkeypatch.setattr(checkpoint, "write", older)
    train(tmp_path, max_steps=2)
    assert train(tmp_path, max_steps=3, resume=True).step == 3
