"""Figure of chapter 18: the matrix of a batch of pictures and texts, and what each chooses at a temperature."""

import torch
import torch.nn.functional as F

from ..modes import evaluating
from .base import Figure, table
from .packing import pack

_MOST = 10  # pictures of a batch that a page has room for


class SimilarityMatrix(Figure):
    """CLIP's matrix of a small batch: picture n and text n are a pair, all others are their negatives.

    The reader chooses a picture or a text, sees how it would bet on all texts or pictures, and moves the temperature,
    which cosines are divided by; the shares of right choices and the loss follow.

    Args:
        images: (B, 1, height, width) or (B, height, width), floats from 0 to 1, B from 2 to 10.
        texts: B str.
        cosines: (B, B), of picture n (rows) and text m (columns).
        temperature: of the model, from 0.01 to 1.
        picture: which picture is chosen first, from 0.

    Raises:
        ValueError: numbers of pictures, texts and cosines differ, there are too few or too many, or a cosine or the
            temperature is out of range, or there is no such picture.

    Source: Radford et al. 2021, figure 3 (the loss); `info_nce`, symmetric.
    """

    name = "similarity_matrix"
    title = "Pictures choose texts, texts choose pictures"
    hint = (
        "Choose a picture or the number of a text: bars show how it bets. Then move the temperature, which does not "
        "change the order, only how sure the bets are, and with it the loss."
    )

    def __init__(self, images, texts, cosines, temperature, picture=0):
        images, texts = torch.as_tensor(images), [str(text) for text in texts]
        images = images[:, 0] if images.dim() == 4 and images.shape[1] == 1 else images
        cosines, temperature = torch.as_tensor(cosines).detach().cpu().double(), float(temperature)
        B = len(texts)
        if not 2 <= B <= _MOST:
            raise ValueError(f"there are {B} texts, expected 2 to {_MOST}")
        if images.dim() != 3 or len(images) != B:
            raise ValueError(f"images have shape {tuple(images.shape)}, expected ({B}, 1, height, width)")
        if cosines.shape != (B, B) or not (cosines.abs() <= 1 + 1e-4).all():
            raise ValueError(
                f"cosines have shape {tuple(cosines.shape)}, expected ({B}, {B}), from -1 to 1: are they divided by "
                "the temperature already?"
            )
        if not 0.01 - 1e-6 <= temperature <= 1:  # float32's 0.01, where CLIP's is clipped, is below it
            raise ValueError(f"temperature is {temperature}, expected 0.01 to 1")
        if not 0 <= picture < B:
            raise ValueError(f"picture is {picture}, expected 0 to {B - 1}")
        super().__init__(
            f"Cosines of {B} pictures and {B} texts, what each chooses, and the loss, by temperature.",
            texts=texts,
            images=[pack(image, "pixels") for image in images],
            height=images.shape[1],
            width=images.shape[2],
            cosines=cosines,
            temperature=max(temperature, 0.01),
            side="picture",
            chosen=picture,
        )

    @classmethod
    @torch.no_grad()
    def of(cls, model, images, texts, encode, **options):
        """What a model thinks of a batch.

        Args:
            model: a `CLIP`, left in the mode it was in.
            images: (B, 1, height, width), floats from 0 to 1.
            texts: B str.
            encode: function of a list of texts that gives tokens (B, T) and ``valid_lens`` (B,).
            options: ``picture``, as for the class.

        Returns:
            A `SimilarityMatrix`.
        """
        device = model.log_scale.device
        with evaluating(model):
            tokens, valid_lens = encode(list(texts))
            pictures, words = model(images.to(device), tokens.to(device), valid_lens.to(device))
        return cls(images.cpu(), texts, pictures @ words.T, model.temperature.item(), **options)

    def reckon(self, temperature):
        """What the page shows at a temperature.

        Returns:
            dict of ``loss``, in nats, and ``right``: the shares of pictures and of texts that choose their own.
        """
        scores = torch.tensor(self.state["cosines"], dtype=torch.float64) / temperature
        own = torch.arange(len(scores))
        sides = scores, scores.T
        return {
            "loss": sum(F.cross_entropy(side, own).item() for side in sides) / 2,
            "right": [(side.argmax(1) == own).double().mean().item() for side in sides],
        }

    def fallback(self):
        rows = [[f"picture of text {n + 1}", *(f"{x:.2f}" for x in row)] for n, row in enumerate(self.state["cosines"])]
        choices = self.reckon(self.state["temperature"])
        header = ["cosine", *(f"{n + 1}. {text}" for n, text in enumerate(self.state["texts"]))]
        pictures, texts = (f"{share:.0%}" for share in choices["right"])
        caption = (
            f"Cosines of pictures and texts. At the model's temperature, {self.state['temperature']:.3f}, the loss is "
            f"{choices['loss']:.3f} nats; {pictures} of the pictures and {texts} of the texts choose their own."
        )
        return table(header, rows, caption)
