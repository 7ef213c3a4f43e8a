"""The best of several rates."""

from d2lmini.lab.rates import at_the_best


def test_every_rate_has_the_first_seed_and_the_best_one_all():
    learned = []

    def learn(rate, seed):
        learned.append((rate, seed))
        return {"val_loss": abs(rate - 0.2), "seed": seed}

    tried, found = at_the_best(learn, (0.1, 0.2, 0.4), (3, 4))
    assert learned == [(0.1, 3), (0.2, 3), (0.4, 3), (0.2, 4)]
    assert tried == {"rates": [0.1, 0.2, 0.4], "val_loss": [0.1, 0.0, 0.2], "best": 0.2}
    assert [one["seed"] for one in found] == [3, 4]
