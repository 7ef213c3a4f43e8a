"""Experiments: each file has a `Config`, its `PRESETS` and `run(config, device)`; `runner` finds, runs and records them."""
