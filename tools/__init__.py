"""What keeps generated files in step. `python -m tools.sync` runs all of it; each tool takes --check."""
