"""Data sets by name: `registry` says what they are, `store` finds or fetches files, the others read them."""
