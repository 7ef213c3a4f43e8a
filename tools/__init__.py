"""What keeps generated files in step. `python -m tools.sync` runs all of it; each tool takes --check."""

import d2lmini  # noqa: F401  before torch: it says how threads wait
