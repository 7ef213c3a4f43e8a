"""Where words stand: each in the middle of its share of the longest list."""

import torch


def cases():
    for rooms, before in (([[27.0] * 3, [27.0] * 5], 26), ([[40, 60, 38], [90, 38]], 66), ([[50], [38, 38]], 0)):
        longest = max(map(sum, rooms))
        middles = []
        for side in rooms:
            own = torch.tensor(side, dtype=torch.float64)
            own = own + (longest - own.sum()) / len(own)  # what each takes up
            middles.append((before + own.cumsum(0) - own / 2).tolist())
        yield "spread", [rooms, before], {"middles": middles, "length": longest + before + 4}
