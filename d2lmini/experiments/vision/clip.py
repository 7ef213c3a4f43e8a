"""Chapter 18: pictures of Fashion-MNIST and captions made by rule, told apart by a small CLIP.

What can it classify that was never a label? Classes whose pictures and names were held out of training, called by their
names and described in words that are known; classes called by names that no caption had; attributes of a picture. And
what does it cost that texts repeat in a batch, each a false negative of the other's picture?

Source: Radford et al. 2021; classes described by attributes: Lampert et al. 2009.
"""

from dataclasses import dataclass, replace
from statistics import mean

import torch

from d2lmini.data.captions import ATTRIBUTES, WORDINGS, FashionCaptions
from d2lmini.data.images import FASHION_MNIST_LABELS, fashion_mnist_checksums
from d2lmini.experiments.vision import classification
from d2lmini.lab import summaries
from d2lmini.lab.parts import Parts
from d2lmini.models.clip import CLIP, CLIPConfig, picture_encoder, repeats_floor, same_texts


@dataclass(frozen=True)
class Contestant:
    """Trained on all classes; ``plain`` captions are one sentence a class; ``repeats`` as in `CLIP`."""

    name: str
    plain: bool = False
    repeats: bool = True


@dataclass(frozen=True)
class Config(classification.Recipe):
    """Settings of `CLIPConfig` beside those of the recipe.

    ``splits`` are the labels held out of training, a run each; ``classifier_lr`` is that of the plain classifier;
    ``draws`` is how often words never seen get another embedding.
    """

    pictures: str = "cnn"
    arch: tuple = ((2, 32), (2, 64), (2, 128))
    patch_size: int = 7
    num_embed: int = 64
    num_hiddens: int = 64
    num_heads: int = 4
    num_blks: int = 2
    classifier_lr: float = 4e-3
    draws: int = 50
    splits: tuple = tuple((i, i + 5) for i in range(5))  # each class once, by a rule that knows no result
    contestants: tuple = (
        Contestant("captions"),
        Contestant("labels", plain=True),
        Contestant("labels, repeats left out", plain=True, repeats=False),
    )
    erase: float = 0.0


PRESETS = {
    "smoke": replace(
        Config(), subset="shipped", num_train=200, batch_size=20, steps=4, checks=2, arch=((1, 4), (1, 8)),
        num_embed=8, num_hiddens=8, num_heads=2, num_blks=1, splits=((0, 5),), draws=2, seeds=(0,),
        contestants=(Contestant("captions"), Contestant("plain", plain=True, repeats=False)),
    ),
    # one split, and 2,000 pictures
    "cpu": replace(
        Config(), subset="shipped", batch_size=64, steps=300, checks=2, arch=((1, 8), (1, 16), (1, 32)),
        num_embed=32, num_hiddens=32, splits=((2, 7),), contestants=Config().contestants[:1], lr=4e-3, seeds=(0,),
    ),
    "laptop": replace(
        Config(), **classification.LAPTOP | {"steps": 1_500, "checks": 5}, arch=((1, 8), (1, 16), (1, 32)),
        num_hiddens=48, lr=4e-3, seeds=(0,),
    ),
    "full": Config(),
}  # fmt: skip


class Pairs(classification.Pictures):
    """Batches of pictures, tokens of their captions and ``valid_lens``, without the classes held out.

    Args:
        config: a `Config`.
        device, seed: as `classification.Pictures`.
        held_out: labels.
        plain: as `FashionCaptions.write`.
    """

    def __init__(self, config, device, seed=0, held_out=(), plain=False):
        super().__init__(config, device, seed)
        self.plain, self.augmentation = plain, self.train.augment
        kept = ~torch.isin(self.train.labels.cpu(), torch.tensor(held_out, dtype=torch.long))
        kept = kept.to(self.train.labels.device)
        self.train.images, self.train.labels = self.train.images[kept], self.train.labels[kept]
        self.captions = FashionCaptions(self.train.images[:, None].float() / 255)
        self.train.augment = self._pair

    def _pair(self, images, labels):
        tokens, valid_lens = self.captions.encode(self.captions.write(images, labels, plain=self.plain))
        images, _ = self.augmentation(images, labels)  # after the captions: they tell of the picture as it was
        return images, tokens.to(images.device), valid_lens.to(images.device)

    def get_dataloader(self, train):
        return super().get_dataloader(True) if train else None  # scored by `score`, on all wordings at once


def make(config, captions, repeats=True):
    """The `CLIP` of a configuration, for what `FashionCaptions` writes."""
    return CLIP(settings(config, captions), config.lr, config.weight_decay, repeats=repeats)


def settings(config, captions):
    """The `CLIPConfig` of a configuration."""
    names = "pictures", "arch", "patch_size", "num_embed", "num_hiddens", "num_heads", "num_blks"
    options = {name: getattr(config, name) for name in names}
    return CLIPConfig(vocab_size=len(captions.vocab), max_len=captions.max_len, **options)


class Scored:
    """The test pictures as a trained model sees them: ``vectors`` (N, D), ``labels`` (N,) and ``sides``, on the CPU."""

    @torch.no_grad()
    def __init__(self, model, data):
        self.model, self.captions = model.eval(), data.captions
        vectors, labels, sides = [], [], []
        for places in torch.arange(len(data.val)).split(500):
            images, y = data.val.__getitems__(places)
            vectors.append(model.embed_images(images).cpu())
            labels.append(y.cpu())
            sides.append(torch.stack(list(self.captions.sides(images.cpu()).values()), 1))
        self.vectors, self.labels, self.sides = torch.cat(vectors), torch.cat(labels), torch.cat(sides)

    def cosines(self, class_texts):
        """Of pictures and classes, (N, C)."""
        return self.vectors @ self.model.class_vectors(class_texts, self.captions.encode).cpu().T

    def accuracy(self, wording, candidates=None, classes=None):
        """The share of right choices among ``candidates``, of pictures whose labels are in ``classes``; None: all."""
        candidates = list(range(len(FASHION_MNIST_LABELS))) if candidates is None else list(candidates)
        chosen = torch.tensor(candidates)[self.cosines(self.captions.class_texts(wording, candidates)).argmax(1)]
        asked = torch.isin(self.labels, torch.tensor(candidates if classes is None else list(classes)))
        return (chosen == self.labels)[asked].cpu().double().mean().item()

    @torch.no_grad()
    def by_lot(self, wording, candidates, words, draws):
        """`accuracy` among candidates, of each of so many new draws of the embeddings of untrained ``words``.

        What a word means that no caption had is what its embedding happened to be.
        """
        weight = self.model.text_encoder.embedding.weight
        places = torch.tensor([self.captions.vocab[word] for word in words], device=weight.device)
        kept, accuracies = weight[places].clone(), []
        for seed in range(draws):
            noise = torch.randn(kept.shape, generator=torch.Generator().manual_seed(seed))
            weight[places] = kept.norm() / noise.norm() * noise.to(weight)  # as long as they were
            accuracies.append(round(self.accuracy(wording, candidates), 4))
        weight[places] = kept
        return accuracies

    def attributes(self, classes=None):
        """How often little and much of an attribute are told apart, the mean of both shares: dict by attribute.

        Of pictures in the outer thirds whose labels are in ``classes`` alone; None where one side has no picture.
        """
        shares, asked = {}, torch.isin(self.labels, torch.tensor(list(range(10)) if classes is None else list(classes)))
        for i, name in enumerate(ATTRIBUTES):
            much = self.cosines(self.captions.attribute_texts(name)).argmax(1) == 1
            low, high = (asked & (self.sides[:, i] == side) for side in (-1, 1))
            both = low.any() and high.any()
            shares[name] = (
                mean([(~much)[low].cpu().double().mean().item(), much[high].cpu().double().mean().item()])
                if both
                else None
            )
        return shares

    def by_class(self, wording):
        """Mean cosines of the pictures of each class (rows) with each class's texts: 10 lists of 10."""
        cosines = self.cosines(self.captions.class_texts(wording))
        return [[round(x, 4) for x in cosines[self.labels == i].mean(0).tolist()] for i in range(10)]


def learn(held_out, contestant, config, seed, device, parts, part):
    """Trains a `CLIP` without some classes. Returns: dict for JSON with what is trained, and the `Scored` of it."""
    torch.manual_seed(seed)
    data = Pairs(config, device, seed, held_out, contestant.plain)
    model = make(config, data.captions, contestant.repeats)
    history = classification.fit(model, data, config, device, seed, None, parts, part)
    trained = {
        "temperature": model.temperature.item(),
        "parameters": model.num_parameters,
        "train_images": len(data.train),
        "train_s": round(history["seconds"][-1], 1),
        "curves": summaries.curves(history),
    }
    return trained, Scored(model, data), data


def on_all(contestant, config, seed, device, parts, part):
    """Trains a contestant on all classes and asks for them in all wordings: a dict for JSON."""
    trained, scored, data = learn((), contestant, config, seed, device, parts, part)
    every = list(range(len(FASHION_MNIST_LABELS)))
    # how alike the captions of a batch are: in batches that no training saw
    torch.manual_seed(seed)
    batches = [next(iter(data.train_dataloader()))[1:] for _ in range(5)]
    repeats = [same_texts(*batch) for batch in batches]
    return trained | {
        "accuracy": {wording: scored.accuracy(wording) for wording in WORDINGS},
        "by_lot": scored.by_lot("new words", every, data.captions.never_written(every, "new words"), config.draws),
        "attributes": scored.attributes(),
        "cosines": {wording: scored.by_class(wording) for wording in ("names", "new words")},
        "repeated": mean((same.sum(1) > 1).cpu().double().mean().item() for same in repeats),
        "floor": mean(map(repeats_floor, repeats)),
    }


def without(held_out, config, seed, device, parts, part):
    """Trains without some classes and asks for these: a dict for JSON; ``chance`` stands beside.

    ``among held out`` chooses among these classes alone, ``among all`` among the ten; ``by_lot`` is the former by name,
    of each of ``draws`` embeddings of the words ``never_seen``.
    """
    trained, scored, data = learn(held_out, Contestant("captions"), config, seed, device, parts, part)
    names = [FASHION_MNIST_LABELS[i] for i in held_out]
    seen = [i for i in range(len(FASHION_MNIST_LABELS)) if i not in held_out]
    asked = "names", "descriptions"  # a held-out name is a word never seen
    words = {wording: data.captions.never_written(seen, wording, held_out) for wording in asked}
    return trained | {
        "held_out": names,
        "never_seen": words,
        "by_lot": scored.by_lot("names", held_out, words["names"], config.draws),
        "among held out": {wording: scored.accuracy(wording, held_out) for wording in asked},
        "among all": {wording: scored.accuracy(wording, classes=held_out) for wording in asked},
        "chance": {"among held out": 1 / len(held_out), "among all": 1 / len(FASHION_MNIST_LABELS)},
        "by_class": {
            name: {wording: scored.accuracy(wording, classes=[i]) for wording in asked}
            for name, i in zip(names, held_out, strict=True)
        },
        "seen": {wording: scored.accuracy(wording, seen) for wording in WORDINGS},
        "attributes": scored.attributes(held_out),
    }


def classify(config, seed, device, parts, part):
    """Trains the plain classifier, the same network on the same pictures and as many steps: a dict for JSON."""
    torch.manual_seed(seed)
    captions = FashionCaptions(torch.rand(3, 1, 28, 28))  # for its sizes alone
    net = picture_encoder(settings(config, captions), len(FASHION_MNIST_LABELS))
    record = classification.train(net, replace(config, lr=config.classifier_lr), device, seed, None, parts, part)
    return record["metrics"] | {"parameters": net.num_parameters, "curves": record["curves"]}


def check(config):
    """Raises ValueError unless each split leaves out two classes or more, and leaves two."""
    for split in config.splits:
        if not 2 <= len(set(split)) == len(split) <= len(FASHION_MNIST_LABELS) - 2 or not set(split) <= set(range(10)):
            raise ValueError(f"a split is {split}, expected from 2 to 8 different labels, each from 0 to 9")


def run(config, device, parts=None):
    """Trains the classifier, every contestant and every split with every seed; see `d2lmini.lab` for the arguments.

    Returns:
        dict with ``metrics``: lists over the seeds of ``classifier`` (`classification.measures`), ``contestants`` by
        name (`on_all`) and ``splits`` by the classes held out (`without`); ``curves`` of each training; and ``data``.

    Raises:
        ValueError: see `check`.
    """
    check(config)
    parts = parts or Parts()
    works = {("classifier", "classifier"): (classify,)}
    works |= {("contestants", contestant.name): (on_all, contestant) for contestant in config.contestants}
    for held_out in config.splits:
        works["splits", ", ".join(FASHION_MNIST_LABELS[i] for i in held_out)] = (without, held_out)
    metrics, curves = {"classifier": {}, "contestants": {}, "splits": {}}, {}
    for (group, name), (work, *args) in works.items():
        rows = []
        for seed in config.seeds:
            part = f"{name}-{seed}".replace(", ", "-").replace(" ", "-")
            row = parts(part, work, *args, config, seed, device, parts, part)
            curves[part] = row.pop("curves")
            rows.append(row)
        metrics[group][name] = rows
    metrics["classifier"] = metrics["classifier"]["classifier"]
    metrics["headline"] = headline(metrics)
    return {"metrics": metrics, "curves": curves, "data": fashion_mnist_checksums(config.subset)}


def headline(metrics):
    """Accuracies on all classes and on those held out, means over seeds and splits, in a sentence."""
    rows = next(iter(metrics["contestants"].values()))
    on = {wording: 100 * mean(row["accuracy"][wording] for row in rows) for wording in WORDINGS}
    new_words = 100 * mean(mean(row["by_lot"]) for row in rows)
    splits = [row for rows in metrics["splits"].values() for row in rows]
    described = 100 * mean(row["among held out"]["descriptions"] for row in splits)
    lots = 100 * mean(mean(row["by_lot"]) for row in splits)
    classifier = 100 * mean(row["accuracy"] for row in metrics["classifier"])
    chance = 100 * mean(row["chance"]["among held out"] for row in splits)
    return (
        f"ten classes by name {on['names']:.1f} % right, described {on['descriptions']:.1f} %, by words never seen "
        f"{new_words:.1f} %, a plain classifier {classifier:.1f} %; classes held out, told from each other: "
        f"described {described:.1f} %, by name {lots:.1f} %, chance {chance:.1f} %"
    )
