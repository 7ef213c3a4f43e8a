"""Countries and their capitals: facts that a language model may know."""

from pathlib import Path

_FILE = Path(__file__).parent / "assets" / "capitals.txt"


def capitals():
    """Sovereign states with one undisputed capital.

    Left out are states whose capital is disputed, is moving, or is not one city: Benin, Bolivia, Burundi, Eswatini,
    Indonesia and South Africa among them. Names are in English, without accents, and have their article:
    ``"the Netherlands"``.

    Returns:
        dict from the country to its capital, both str, sorted by country without its article.

    Source: collected for this book.
    """
    return dict(line.split(": ") for line in _FILE.read_text(encoding="utf-8").splitlines())
