"""The best of several learning rates, so that what is compared is not compared at a rate that suits one of them."""


def at_the_best(learn, rates, seeds):
    """Learns at each rate with the first seed, and with the other seeds at the best of them.

    Args:
        learn: function of a rate and a seed that returns a dict with ``val_loss``, the last validation loss.
        rates, seeds: tuples.

    Returns:
        dict with ``rates``, ``val_loss`` of each, and ``best``, the rate with the lowest; then the list of what
        ``learn`` gave at that rate, one for each seed.
    """
    first, *others = seeds
    tried = {rate: learn(rate, first) for rate in rates}
    losses = {rate: outcome["val_loss"] for rate, outcome in tried.items()}
    best = min(losses, key=losses.get)
    chosen = [tried[best], *(learn(best, seed) for seed in others)]
    return {"rates": list(rates), "val_loss": list(losses.values()), "best": best}, chosen
