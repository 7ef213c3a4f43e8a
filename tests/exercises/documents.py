"""A small exercise as a document, for the tests to damage."""

import pytest

from d2lmini.exercises.engine.document import DocumentError


def assert_is_refused(read, path, text, at, sentence):
    """Reading a document must fail in one sentence with its file and the line that begins with ``at``."""
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DocumentError) as caught:
        read(path)
    file, line, said = str(caught.value).split(":", 2)
    assert file == str(path) and sentence in said and len(said.splitlines()) == 1
    assert text.splitlines()[int(line) - 1].startswith(at), line


DOCUMENT = '''\
# Twice as much

The double of a tensor is asked for: write it, and say what it costs. It takes one multiplication an entry.

## a: code, seconds=20, min_checks=1

Write `twice(x)`.

```python answer
def twice(x):
    """The double.

    Args:
        x: (B, T), numbers.

    Returns:
        (B, T).
    """
    doubled = 2 * x
    return doubled
```

### Hints

1. A tensor can be multiplied
   by a number.
2. `2 * x`.

### Also right

```python also
def added(x):
    return x + x
```

### Mistakes

```mistakes
doubled = 2 * x
> doubled = x | same | this is x itself
> doubled = 2 * x
>>     doubled = doubled + 1 | one-more | there is a one too many: where does
    it come from?
2 * x
> 3 * x | shape
> x | 2 | or | nothing is doubled: for floats there is no or
= partial(raised, 2) | squared | this is the square
```

```python wrong
def raised(n, x):
    return x**n
```

- **values**: Compute one entry
  by hand.

### Check

```python check
def reference(x):
    return x * 2


def verify(t, answer):
    x = t.randn(3, 4)
    want = reference(x.double())
    t.same(t.call(answer, x), want)
```

- without **alone**: there is no batch here.

### What to take from it

A sum of equals is a product.

## b: choice

What does it cost?

- [ ] nothing
  Every entry is multiplied.
- [x] a multiplication an entry
  There are as many as entries.
- [ ] two
  One is enough.

### Hints

1. Count.
'''
