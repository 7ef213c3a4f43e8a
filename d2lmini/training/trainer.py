"""The loop: it knows no model and no data, only `Module` and `DataModule`.

What surrounds it is called by name: `state` keeps and restores a run, `curves` draws it, `pace` tells its time,
`diagnosis` refuses what is not finite, `batches` and `device` share the work among processes.
"""

from contextlib import nullcontext

import torch
from torch import nn

from ..utils import HyperParameters, widest_float
from . import diagnosis, state
from .batches import digest, epoch_batches, in_groups, is_repeat, share
from .curves import Curves
from .device import Steps, make_accelerator, sum_over_processes
from .options import check_fit, check_loader, check_loss, check_optimizer, check_options
from .pace import Clock, progress_bar

_PER_STEP = ("step", "epoch", "train_loss", "lr", "grad_norm", "seconds")


class Trainer(HyperParameters):
    """Trains a `Module` on a `DataModule`: on the CPU, on a GPU, or on many with ``accelerate launch script.py``.

    The options after the star are by keyword. Several processes make one step of a batch each, which together are one
    batch. A step's loss and gradient are means over all of its batches, weighted by ``Module.batch_weight``: what one
    large batch would give.

    ``history`` has lists that are ready for JSON. One value for each step: ``step``, ``epoch`` (both from 1),
    ``train_loss``, ``lr``, ``grad_norm`` (before clipping; None where fp16 left out the step), ``seconds`` (since the
    start, those before a restart included). One value for each validation: ``val_step``, ``val_epoch`` (epochs trained,
    a fraction where training stopped inside of one), and ``val_<key>``, the weighted mean of what the module plots.

    Args:
        max_epochs: passes over the training data.
        num_gpus: 0: train on the CPU; else on the GPU of this process, or on the CPU where there is none.
        gradient_clip_val: largest norm of the gradient; 0: any.
        precision: "float32", "bf16" or "fp16" (on a GPU) by autocast; "auto": bf16 on GPUs that have it, else float32.
        accumulate: batches in a step.
        schedule: function from the step, counted from 1, to a factor on the optimizer's learning rates.
        compile: whether to call ``torch.compile`` on the model; or a dict of arguments for it.
        seed: of all random numbers; None: they go on from where they are.
        checkpoint: folder for checkpoints; None: none.
        resume: whether to go on from the checkpoint in the folder, if there is one.
        checkpoint_every: steps from one checkpoint to the next; None: one at the end of each epoch. The end of an
            epoch and the end of the run always have one.
        max_steps: stop after so many steps.
        max_seconds: stop after the step in which so much time of this call of ``fit`` is over; None, 0: never.
        callbacks: functions called with the trainer at the end of each epoch, in every process. One that sets
            ``trainer.should_stop = True`` ends the run.

    Raises:
        ValueError: an option is outside of its range.
        TypeError: it is of another type.

    Source: D2L section 3.2.4.
    """

    def __init__(
        self,
        max_epochs,
        num_gpus=0,
        gradient_clip_val=0,
        *,
        precision="auto",
        accumulate=1,
        schedule=None,
        compile=False,
        seed=None,
        checkpoint=None,
        resume=False,
        checkpoint_every=None,
        max_steps=None,
        max_seconds=None,
        callbacks=(),
    ):
        self.save_hyperparameters()
        check_options(self)
        self.accelerator = None

    def fit(self, model, data):
        """Trains the model; it stays on the device that it was trained on, in evaluation mode.

        Args:
            model: a `Module`; its ``configure_optimizers`` says which optimizer.
            data: a `DataModule`; its ``val_dataloader()`` may give None.

        Raises:
            ValueError: a loader has no batches, or the folder holds a checkpoint and ``resume`` is not given.
            TypeError: model, data, loss or optimizer are not what they have to be.
            FloatingPointError: a loss, a gradient or a mean over the validation data is not finite; parameters and
                checkpoints stay as they were.
            CheckpointError: the checkpoint is damaged, foreign, or of another model, data or configuration, or the
                folder cannot be written, or another run is at work in it.
        """
        check_fit(model, data)
        self.model, self.data = model, data
        self.accelerator, self.used_precision = make_accelerator(self.num_gpus, self.precision)
        with state.claimed_folder(self):
            self.prepare()
            try:
                while self.epoch < self.max_epochs and (self.batch or not self.must_stop()):
                    if not self.fit_epoch():
                        break
            finally:
                self.bar.close()
                model.eval()

    def fit_epoch(self):
        """Trains to the end of the epoch, or until the run has to stop, and validates.

        Returns:
            Whether the epoch came to its end.
        """
        self.model.train()
        batches = epoch_batches(self.train_dataloader, self.data_seed, self.epoch, skip=self.batch)
        for group in in_groups(batches, self.accumulate):
            if self.must_stop():
                self.save()  # before it validates: a run that goes on from here has no validation too many
                self.validate(self.epoch + self.batch / self.num_train_batches)
                return False
            if self.checkpoint_every and self.step and self.step % self.checkpoint_every == 0:
                self.save()
            self.fit_step(group)
        self.validate(self.epoch + 1)
        self.epoch, self.batch = self.epoch + 1, 0
        for callback in self.callbacks:
            callback(self)
        self.save()
        return True

    def fit_step(self, group):
        """One update of the parameters by a group of batches."""
        weights = [self._weigh(batch, self.train_dataloader, self.batch + i) for i, batch in enumerate(group)]
        group = [self.prepare_batch(batch) for batch in group]
        lr = self.scheduler.get_last_lr()[0]
        loss, total = self.backward(group, weights)
        norm = self.clip_gradients(self.gradient_clip_val or float("inf"), self.prepared_model)
        # here alone the loop waits for the device
        loss, norm = torch.stack([self._over_processes(loss), norm.to(loss)]).tolist()
        diagnosis.refuse_step(self, group, loss, norm, lr, total)
        self.optim.step()
        self.optim.zero_grad()
        self.scheduler.step()
        self.count(group, loss, norm, lr)

    def backward(self, group, weights):
        """Adds up the gradients of a group of batches, each by its weight.

        Returns:
            The loss of the group in this process, and the weights' sum over all of them: scalar tensors.
        """
        processes = self.accelerator.num_processes
        total = torch.as_tensor(self._over_processes(sum(weights)))
        loss = 0.0
        for i, (batch, weight) in enumerate(zip(group, weights, strict=True), start=1):
            self._weight = weight
            with nullcontext() if i == len(group) else self.accelerator.no_sync(self.prepared_model):
                part = check_loss(self.prepared_model(batch, train=True), self.model)
                if len(group) * processes > 1:  # backward passes add up, and processes take their mean
                    part = part * (weight * processes / total).to(part)
                self.accelerator.backward(part)
            loss = loss + part.detach().to(widest_float(part.device)) / processes
        return loss, total

    def validate(self, epochs):
        """Scores the validation data, where there are any, after so many epochs, and writes the means down."""
        if self.val_dataloader is None:
            return
        self.model.eval()
        for i, batch in enumerate(epoch_batches(self.val_dataloader, self.data_seed, self.epoch)):
            self._weight = self._weigh(batch, self.val_dataloader, i)
            with torch.no_grad():
                self.prepared_model(self.prepare_batch(batch), train=False)
            self.val_batch_idx += 1
        values = {f"val_{key}": value for key, value in self.curves.validated(epochs).items()}
        diagnosis.refuse_validation(self, values)
        for name, value in {"val_step": self.step, "val_epoch": epochs, **values}.items():
            self.history.setdefault(name, []).append(value)

    def save(self):
        """Writes a checkpoint, where there is a folder for it."""
        state.save(self)

    def must_stop(self):
        """Whether the run ends here, though there is more to train on."""
        return self.should_stop or self.late or self.step >= (self.max_steps or float("inf"))

    def count(self, group, loss, norm, lr):
        """Counts a step and writes down what it gave."""
        self.step += 1
        self.batch += len(group)
        self.train_batch_idx += len(group)
        self.late = bool(self.max_seconds and self._over_processes(int(self.clock.is_up)))
        norm = norm if norm < float("inf") else None
        values = (self.step, self.epoch + 1, loss, lr, norm, self.clock.seconds)
        for name, value in zip(_PER_STEP, values, strict=True):
            self.history[name].append(value)
        self.curves.trained(self.train_batch_idx)
        self.bar.set_description(f"epoch {self.epoch + 1}/{self.max_epochs}", refresh=False)
        self.bar.set_postfix(loss=f"{loss:.3f}", refresh=False)
        self.bar.update()

    def prepare(self):
        """Brings the data, the model and all that is counted to where the run begins, or goes on."""
        from accelerate.utils import broadcast_object_list, set_seed

        if self.seed is not None:
            set_seed(self.seed)
        self.data_seed = broadcast_object_list([int(torch.randint(2**62, ()))])[0]
        self.epoch = self.step = self.batch = self.train_batch_idx = self.val_batch_idx = 0
        self.should_stop = self.late = False
        self.history = {name: [] for name in (*_PER_STEP, "val_step", "val_epoch")}
        self.prepare_data(self.data)
        self.prepare_model(self.model)
        if self.seed is not None:
            set_seed(self.seed, device_specific=True)  # dropout differs from process to process
        self.clock = Clock(self.max_seconds)
        self.clock.seconds_before = state.restore(self)
        self.curves.start(self.train_batch_idx)
        self.bar = progress_bar(self)

    def prepare_data(self, data):
        """Gets the loaders, and of each the part that this process works on."""

        def prepare(kind, loader):
            if loader is None:
                return None
            check_loader(loader, kind)
            return share(loader, self.accelerator.process_index, self.accelerator.num_processes)

        loaders = {"training": data.train_dataloader(), "validation": data.val_dataloader()}
        self.train_dataloader, self.val_dataloader = (prepare(kind, loader) for kind, loader in loaders.items())
        self.data_digests = {}
        if self.checkpoint is not None:  # it has to be known again
            self.data_digests = {kind: digest(loader) for kind, loader in loaders.items()}
        self.num_train_batches = len(self.train_dataloader)
        self.num_val_batches = 0 if self.val_dataloader is None else len(self.val_dataloader)

    def prepare_model(self, model):
        """Brings the model to the device, and makes its optimizer."""
        model.trainer = self
        model.board.clear()
        model.board.xlabel = model.board.xlabel or "epoch"
        self.curves = Curves(model, self.num_train_batches, self._take, self.accelerator.is_main_process)
        model.to(self.accelerator.device)
        if any(isinstance(parameter, nn.parameter.UninitializedParameter) for parameter in model.parameters()):
            self._size_lazy_layers()
        optimizer = model.configure_optimizers()
        check_optimizer(optimizer, model)
        self.config = state.configuration(self, optimizer)
        schedule = self.schedule or (lambda step: 1.0)
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda done: schedule(done + 1))
        if self.compile is not False and self.compile is not None:
            model.compile(**(self.compile if isinstance(self.compile, dict) else {}))
        self.prepared_model, self.optim = self.accelerator.prepare(Steps(model), optimizer)

    def prepare_batch(self, batch):
        """The batch, on the device."""
        from accelerate.utils import send_to_device

        return send_to_device(batch, self.accelerator.device, non_blocking=True)

    def clip_gradients(self, grad_clip_val, model):
        """Scales the gradients of a model so that their norm is at most ``grad_clip_val``.

        Parameters without a gradient take no part.

        Returns:
            The norm before, a scalar tensor.

        Source: D2L section 9.5.3.
        """
        clip = nn.utils.clip_grad_norm_ if self.accelerator is None else self.accelerator.clip_grad_norm_
        norm = clip(model.parameters(), grad_clip_val)
        return norm.full_tensor() if hasattr(norm, "full_tensor") else norm  # of sharded parameters

    def record(self, key, value, train):
        """Takes a value of the current batch; `Module.plot` calls it."""
        (self.curves.train if train else self.curves.val).add(key, value, self._weight)

    def _weigh(self, batch, loader, index):
        return 0 if is_repeat(loader, index) else self.model.batch_weight(batch)

    def _over_processes(self, value):
        return sum_over_processes(self.accelerator, value)

    def _take(self, means):
        return means.take(self.accelerator.device, self._over_processes)

    def _size_lazy_layers(self):
        self.model.eval()
        batch = next(epoch_batches(self.train_dataloader, self.data_seed, 0))
        with torch.no_grad():
            self.model(*self.prepare_batch(batch)[:-1])
