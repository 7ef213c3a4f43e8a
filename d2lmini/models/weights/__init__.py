"""Models with weights, by name: what is published as data is fetched here and put into a model."""
