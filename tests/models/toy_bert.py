"""A small BERT and a batch for it, of rows of unlike length."""

import torch

from d2lmini.models.bert import BERT
from d2lmini.models.bert_config import BERT_CONFIGS

TOKENS = torch.randint(101, (4, 8), generator=torch.Generator().manual_seed(0))
LENS = torch.tensor([8, 5, 1, 3])
RIGHT = torch.arange(8) < LENS[:, None]
LEFT = RIGHT.flip(1)
SEGMENTS = (torch.arange(8) >= 2).long().expand(4, 8)


def toy_bert():
    """In evaluation mode, the same each time."""
    torch.manual_seed(0)
    return BERT(BERT_CONFIGS["toy"]).eval()
