"""CLIP: one encoder for pictures, one for texts, and one space in which what belongs together is near.

It is trained to tell which text of a batch belongs to which picture. Whoever can do that can also choose among the
names of classes: a classifier whose classes are written down, not trained.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from ..objectives.contrastive import info_nce
from ..position import LearnedPositionalEncoding
from ..training import Module
from ..training.optimizers import adamw_of
from ..transformer import TransformerEncoderBlock
from ..utils import in_float64
from .heads import mean_pooling
from .named_parts import check_config
from .resnet import ResNet
from .vit import ViT

MAX_SCALE = 100.0  # of the cosines, which are multiplied by 1 / temperature: Radford et al. 2021, section 2.5
_LOG_MAX_SCALE = math.log(MAX_SCALE)
PICTURES = "cnn", "vit"


@dataclass(frozen=True)
class CLIPConfig:
    """What makes a `CLIP`; sizes are for pictures of 28 x 28 pixels and captions of a line.

    Args:
        vocab_size: V.
        max_len: most tokens of a text.
        num_embed: D, features of the space that pictures and texts share.
        pictures: their encoder: "cnn", a `ResNet`, or "vit", a `ViT` that has the widths of the texts' encoder.
        img_size, num_channels: of the pictures; patch_size: of a `ViT`.
        arch: of the `ResNet`.
        num_hiddens: h of the texts' encoder.
        num_heads: H, a divisor of h.
        num_blks: how many blocks.
        dropout: in training, in the Transformers.
        temperature: where the learned one begins.

    Raises:
        ValueError: there is no such encoder, a size of the texts' encoder is below 1, or the temperature does not lie
            between 1 / 100 and infinity.

    Source: Radford et al. 2021, section 2.4, whose encoders are a ResNet or a ViT, and a Transformer of 63 million
    parameters.
    """

    vocab_size: int = 256
    max_len: int = 32
    num_embed: int = 64
    pictures: str = "cnn"
    img_size: int = 28
    num_channels: int = 1
    patch_size: int = 7
    arch: tuple = ((1, 16), (1, 32), (1, 64))
    num_hiddens: int = 64
    num_heads: int = 4
    num_blks: int = 2
    dropout: float = 0.0
    temperature: float = 0.07

    def __post_init__(self):
        sizes = ("vocab_size", "max_len", "num_embed", "num_hiddens", "num_heads", "num_blks")
        check_config(self, {"pictures": PICTURES}, sizes)
        if not 1 / MAX_SCALE <= self.temperature < math.inf:
            raise ValueError(f"temperature is {self.temperature}, expected at least {1 / MAX_SCALE}, and finite")


class TextTower(nn.Module):
    """A Transformer that reads texts and gives one vector of each: the mean over its tokens, projected.

    CLIP's own is causal and takes the last token; as nothing is generated here, ours reads in both directions.

    Args:
        config: a `CLIPConfig`.

    Source: Radford et al. 2021, section 2.4.
    """

    def __init__(self, config):
        super().__init__()
        h = config.num_hiddens
        self.embedding = nn.Embedding(config.vocab_size, h)
        nn.init.normal_(self.embedding.weight, std=0.02)
        self.positions = LearnedPositionalEncoding(h, config.dropout, config.max_len)
        self.blks = nn.ModuleList(
            TransformerEncoderBlock(
                h, 4 * h, config.num_heads, config.dropout, use_bias=True, norm_first=True, activation=nn.GELU
            )
            for _ in range(config.num_blks)
        )
        self.ln = nn.LayerNorm(h)
        self.projection = nn.Linear(h, config.num_embed, bias=False)

    def forward(self, tokens, valid_lens=None):
        """Tokens (M, T) of which ``valid_lens`` (M,) are no padding to (M, D)."""
        X = self.positions(self.embedding(tokens))  # (M, T, h)
        for blk in self.blks:
            X = blk(X, valid_lens)
        return self.projection(mean_pooling(self.ln(X), valid_lens))


class CLIP(Module):
    """Two encoders whose vectors are compared by their cosine, over a temperature that is learned.

    A batch is images (B, c, height, width), tokens (B, T) and, where texts are padded, ``valid_lens`` (B,): text n is
    that of image n. The temperature never falls below 1 / 100.

    Args:
        config: a `CLIPConfig`; None: the default.
        lr, weight_decay: of the AdamW that `configure_optimizers` gives; matrices decay.
        repeats: whether a text that stands in a batch twice counts as a negative of the other's picture, as in CLIP.
            It is a false one, and of no use to tell apart.
        image_encoder, text_encoder: modules in place of the config's, images to (N, D), and tokens and ``valid_lens``
            to (M, D).

    Source: Radford et al. 2021, figure 3; D2L section 11.9.6.
    """

    def __init__(self, config=None, lr=1e-3, weight_decay=0.05, *, repeats=True, image_encoder=None, text_encoder=None):
        super().__init__()
        config = config or CLIPConfig()
        self.config, self.lr, self.weight_decay, self.repeats = config, lr, weight_decay, repeats
        self.image_encoder = image_encoder or picture_encoder(config, config.num_embed)
        self.text_encoder = text_encoder or TextTower(config)
        # the logarithm, so that a step is a factor, and nothing has to be kept above 0
        self.log_scale = nn.Parameter(torch.tensor(-math.log(config.temperature)))

    @property
    def temperature(self):
        """What cosines are divided by, a scalar tensor with gradient, 1 / 100 at least."""
        return (-self.log_scale.clamp(max=_LOG_MAX_SCALE)).exp()

    def embed_images(self, images):
        """Images (N, c, height, width), floats, to vectors (N, D) of length 1, float32."""
        return _unit(self.image_encoder(images))

    def embed_texts(self, tokens, valid_lens=None):
        """Tokens (M, T), of which ``valid_lens`` (M,) are no padding, to vectors (M, D) of length 1, float32."""
        return _unit(self.text_encoder(tokens, valid_lens))

    def forward(self, images, tokens, valid_lens=None):
        """As `embed_images` and `embed_texts`: a pair of (N, D) and (M, D), the numbers of which may differ."""
        return self.embed_images(images), self.embed_texts(tokens, valid_lens)

    def similarity(self, image_vectors, text_vectors):
        """Cosines over the temperature: (N, D) and (M, D) to scores (N, M)."""
        return image_vectors @ text_vectors.mT / self.temperature

    def loss(self, image_vectors, text_vectors, negatives=None):
        """Each image chooses its text and each text its image: `info_nce`, symmetric, in nats.

        Args:
            image_vectors, text_vectors: (B, D).
            negatives: booleans (B, B), see `info_nce`.

        Raises:
            ValueError: the numbers of images and texts differ, or there is but one pair.
        """
        if len(image_vectors) != len(text_vectors):
            raise ValueError(
                f"there are {len(image_vectors)} images and {len(text_vectors)} texts, expected as many of each: text "
                "n belongs to image n; several texts of an image are pairs of their own"
            )
        with torch.autocast(image_vectors.device.type, enabled=False):  # 100 times a cosine in bf16 is off by 0.2
            return info_nce(
                image_vectors.float(), text_vectors.float(), self.temperature, symmetric=True, negatives=negatives
            )

    def training_step(self, batch):
        with torch.no_grad():  # clipped here, so that the gradient at the limit still leads away from it
            self.log_scale.clamp_(max=_LOG_MAX_SCALE)
        loss = self._loss(batch)
        self.plot("loss", loss, train=True)
        return loss

    def validation_step(self, batch):
        self.plot("loss", self._loss(batch), train=False)

    def _loss(self, batch):
        negatives = None if self.repeats else ~same_texts(*batch[1:])
        return self.loss(*self(*batch), negatives)

    def configure_optimizers(self):
        """AdamW; matrices decay, biases, norms and the temperature do not."""
        return adamw_of(self, self.lr, self.weight_decay, betas=(0.9, 0.98))

    @torch.no_grad()
    def class_vectors(self, class_texts, encode):
        """A vector of length 1 for each class: the mean over its wordings.

        Args:
            class_texts: for each class a text or a list of them, its wordings: ``["a bag", ["a coat", "a jacket"]]``.
            encode: function of a list of texts that gives tokens (M, T) and ``valid_lens`` (M,).

        Returns:
            (C, D), on the device of the model.

        Raises:
            TypeError: ``class_texts`` is one text.
            ValueError: there are fewer than two classes, one has no wording, or two classes share one.

        Source: Radford et al. 2021, section 3.1.4, for several wordings.
        """
        if isinstance(class_texts, str):
            raise TypeError("class_texts is one text, expected a list with a text, or a list of texts, of each class")
        wordings = [[texts] if isinstance(texts, str) else list(texts) for texts in class_texts]
        if len(wordings) < 2:
            raise ValueError(f"there are {len(wordings)} classes, expected at least 2: one alone is always chosen")
        if not all(wordings):
            raise ValueError(f"class {wordings.index([])} has no wording, expected at least one text")
        class_of = {}
        for i, texts in enumerate(wordings):
            for text in texts:
                if class_of.setdefault(text, i) != i:
                    raise ValueError(
                        f"classes {class_of[text]} and {i} are both called {text!r}: nothing tells them apart"
                    )
        device = self.log_scale.device
        tokens, valid_lens = encode([text for texts in wordings for text in texts])
        vectors = self.embed_texts(tokens.to(device), valid_lens.to(device))
        return torch.stack([F.normalize(part.mean(0), dim=0) for part in vectors.split([len(t) for t in wordings])])

    @torch.no_grad()
    def zero_shot(self, images, class_texts, encode):
        """Classifies images by what classes are called, with no example of any of them.

        Args:
            images: (N, c, height, width), floats.
            class_texts, encode: as `class_vectors`.

        Returns:
            Scores (N, C): cosines over the temperature. Their softmax is how the model would bet.
        """
        return self.similarity(self.embed_images(images), self.class_vectors(class_texts, encode))


def picture_encoder(config, num_outputs):
    """The network for pictures of a `CLIPConfig`, images to (N, num_outputs): its last layer is the projection."""
    if config.pictures == "cnn":
        return ResNet(config.arch, num_classes=num_outputs, num_channels=config.num_channels)
    h = config.num_hiddens
    return ViT(
        config.img_size,
        config.patch_size,
        h,
        4 * h,
        config.num_heads,
        config.num_blks,
        emb_dropout=config.dropout,
        blk_dropout=config.dropout,
        use_bias=True,
        num_classes=num_outputs,
        num_channels=config.num_channels,
    )


def same_texts(tokens, valid_lens=None):
    """Which texts of a batch are the same, word for word: tokens (B, T) to booleans (B, B), True on the diagonal."""
    if valid_lens is not None:  # whatever stands in the padding
        places = torch.arange(tokens.shape[1], device=tokens.device)
        tokens = tokens.masked_fill(places >= valid_lens[:, None], -1)
    return (tokens[:, None] == tokens).all(-1)


def repeats_floor(same):
    """What the loss cannot fall below where texts of a batch repeat, as a text cannot tell its own pictures apart.

    A text that stands there m times gives each of its pairs log m in both directions.

    Args:
        same: booleans (B, B), as `same_texts` gives them.

    Returns:
        Nats, a number.
    """
    return in_float64(same.sum(1)).log().mean().item()


def _unit(X):
    with torch.autocast(X.device.type, enabled=False):
        return F.normalize(X.float(), dim=-1)
