"""The same script gives the same losses on one process and on two, with whole and with sharded parameters."""

import json
import os
import socket
import subprocess
import sys

import pytest
import torch
import toy_training
from toy_training import forkserver, refused, twice, twice_sharded

from d2lmini import results
from d2lmini.training import checkpoint

OUTCOME = ("step", "epoch", "train_loss", "grad_norm", "val_step", "val_epoch", "val_loss", "val_acc")


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """What one process gets with two batches a step. Of the nine batches of an epoch the last is left alone."""
    folder = tmp_path_factory.mktemp("alone")
    twice(folder / "result.json", folder / "run", accumulate=2)
    return json.loads((folder / "result.json").read_text())


def assert_same(path, alone, distributed):
    result = json.loads(path.read_text())
    assert (result["processes"], result["distributed"]) == (2, f"DistributedType.{distributed}")
    assert (alone["processes"], len(alone["step"]), len(alone["val_step"])) == (1, 15, 3)
    for name in OUTCOME:
        assert result[name] == pytest.approx(alone[name], rel=1e-4), name


def launch(*words):
    """Runs the script of the toy run by `accelerate launch`."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
    fixed = ["--num_machines=1", "--mixed_precision=no", "--dynamo_backend=no", "--main_process_port=0"]
    command = [sys.executable, "-m", "accelerate.commands.launch", *fixed, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=250, env=environment)
    assert done.returncode == 0, done.stderr[-4000:]


def in_pair(target, *words):
    """Runs a function in two processes that find each other; returns their exit codes, None for one that hangs."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    both = [forkserver().Process(target=target, args=(rank, port, *words)) for rank in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join(200)
    return [process.exitcode for process in both]


@pytest.mark.slow
def test_a_folder_in_use_is_refused_in_every_process_and_none_waits_for_ever(tmp_path):
    with checkpoint.claim(tmp_path):
        assert in_pair(refused, tmp_path) == [3, 3]


@pytest.mark.slow
@pytest.mark.skipif(torch.cuda.device_count() == 1, reason="accelerate would start two processes on the one GPU")
def test_launched_on_two_processes_it_gives_the_same_losses(tmp_path, alone):
    # --multi_gpu means several processes: without GPUs they are on the CPU, and talk by gloo
    launch("--multi_gpu", "--num_processes=2", toy_training.__file__, tmp_path / "result.json", tmp_path / "run")
    assert_same(tmp_path / "result.json", alone, "MULTI_GPU" if torch.cuda.is_available() else "MULTI_CPU")


@pytest.mark.slow
def test_two_processes_run_an_experiment_and_write_one_record(tmp_path):
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m"]
    words = "d2lmini", "run", "translation_transformer", "--preset", "smoke", "--device", "cpu", "--out", str(tmp_path)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([*torchrun, *words], capture_output=True, text=True, timeout=250, env=environment)
    assert done.returncode == 0, done.stderr[-4000:]
    (path,) = tmp_path.iterdir()
    record = json.loads(path.read_text())
    assert results.problems(record) == [] and record["device"]["processes"] == 2
    assert record["curves"]["step"] == [1, 2, 3, 4]


@pytest.mark.slow
@pytest.mark.skipif(torch.cuda.is_available(), reason="with GPUs accelerate shards parameters by itself: see the next")
def test_with_sharded_parameters_it_gives_the_same_losses(tmp_path, alone):
    assert in_pair(twice_sharded, tmp_path / "result.json", tmp_path / "run") == [0, 0]
    assert_same(tmp_path / "result.json", alone, "FSDP")


@pytest.mark.gpu
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_launched_with_sharded_parameters_it_gives_the_same_losses(tmp_path, alone):
    words = "--use_fsdp", "--fsdp_version=2", "--num_processes=2"
    launch(*words, toy_training.__file__, tmp_path / "result.json", tmp_path / "run")
    assert_same(tmp_path / "result.json", alone, "FSDP")
