"""Experiments: each has a `Config`, `PRESETS` and `run(config, device)`; `runner` runs and records them."""
