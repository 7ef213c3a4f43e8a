"""Formulas of a Markdown text as plain text, for a terminal: ``$\\mathbf q^\\top \\mathbf k_i$`` becomes ``qᵀkᵢ``.

Only what these texts need. Of the packages that do it, pylatexenc 2.11 drops the braces of an exponent (``e^{m - m'}``
becomes ``e^m - m'``) and the bar of a fraction, and unicodeit 0.7 knows neither ``\\mathbf`` nor ``\\log``.
"""

import re
import unicodedata

_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|\s+|.", re.S)
_FORMULA = re.compile(r"(`[^`]*`)|\$\$?([^$]+)\$\$?")
_CLOSING = {"\\rVert", "\\rvert", ")", "]"}
_PLAIN = {"mathbf", "mathrm", "mathit", "mathsf", "boldsymbol", "operatorname", "text", "mathcal"}
_ACCENTS = {"bar": "\u0304", "hat": "\u0302", "tilde": "\u0303", "dot": "\u0307"}
_FUNCTIONS = {name: name for name in ("log", "exp", "sin", "cos", "tanh", "max", "min", "arg", "diag", "tr", "Pr")}
_FUNCTIONS |= {"sum": "∑", "prod": "∏", "int": "∫", "partial": "∂"}
_OPERATORS = {"odot": "⊙", "mapsto": "↦", "to": "→", "times": "×", "cdot": "·", "le": "≤", "ge": "≥", "leq": "≤"}
_OPERATORS |= {"geq": "≥", "ne": "≠", "neq": "≠", "approx": "≈", "in": "∈", "propto": "∝", "equiv": "≡", "mid": "|"}
_OPERATORS |= {"lor": "∨", "land": "∧"}
_SYMBOLS = {"lVert": "‖", "rVert": "‖", "lvert": "|", "rvert": "|", "nabla": "∇", "pm": "±", "infty": "∞", "top": "⊤"}
_SYMBOLS |= {"ldots": "…", "dots": "…", "cdots": "⋯", "prime": "′", "left": "", "right": "", "bigl": "", "bigr": ""}


def _raised(kind):
    pairs = ((c, unicodedata.decomposition(c).split()) for c in map(chr, range(0xA0, 0x2C80)))
    return {chr(int(d[1], 16)): c for c, d in pairs if len(d) == 2 and d[0] == kind}


_SUPER, _SUB = _raised("<super>"), _raised("<sub>")
_SUPER |= {"-": "⁻", "⊤": "ᵀ"}
_SUB |= {"-": "₋"}


def plain(text) -> str:
    """Return a Markdown text with each ``$formula$`` outside of `code` in plain characters."""
    return _FORMULA.sub(lambda m: m[1] or formula(m[2]), text)


def formula(latex) -> str:
    """Return a formula in plain characters; a command that is not known stays as it is."""
    left, done = _TOKEN.findall(latex)[::-1], ""
    while left:  # once, unless a brace closes that was never opened
        done += _group(left)
    return " ".join(done.split())


def _group(left):
    """Read up to the closing brace. ``left``: the tokens that are left, the next one last."""
    done = ""
    while left:
        token = left.pop()
        if token == "}":
            break
        if token in _CLOSING:
            done = done.rstrip()
        if token in ("^", "_"):
            done += _script(_argument(left), token)
        else:
            done += _one(token, left, done)
    return done


def _argument(left):
    while left and left[-1].isspace():
        left.pop()
    return _one(left.pop(), left, "") if left else ""


def _one(token, left, done):
    """Return what a token and its arguments become; ``done`` stands before it."""
    if token == "{":
        return _group(left)
    if token == "'":
        return "′"
    if len(token) == 2 and token[0] == "\\" and not token[1].isalpha():
        return token[1] if token[1] in "{}%$_&#" else " "
    if token[0] != "\\":
        return token
    while left and left[-1].isspace():  # TeX swallows what follows a command
        left.pop()
    name = token[1:]
    if name in _PLAIN:
        return _argument(left)
    if name in _ACCENTS:
        return _argument(left) + _ACCENTS[name]
    if name in ("frac", "tfrac", "dfrac"):
        above, below = _argument(left), _argument(left)
        return f"{_whole(above)}/{_whole(below)}"
    if name == "sqrt":
        return f"√{_whole(_argument(left))}"
    if name in _FUNCTIONS:
        before = " " if done[-1:].isalnum() else ""
        after = " " if left and (left[-1].isalnum() or left[-1][0] == "\\") else ""
        return before + _FUNCTIONS[name] + after
    if name in _OPERATORS:
        return f" {_OPERATORS[name]} "
    if name in ("quad", "qquad"):
        return " "
    if name in _SYMBOLS:
        return _SYMBOLS[name]
    try:
        case = "CAPITAL" if name[0].isupper() else "SMALL"
        return unicodedata.lookup(f"GREEK {case} LETTER {name.upper()}")
    except KeyError:
        return token + " "


def _whole(text):
    return text if len(text) == 1 else f"({text})"


def _script(text, mark):
    table, tight = (_SUPER if mark == "^" else _SUB), text.replace(" ", "")
    return "".join(table[c] for c in tight) if all(c in table for c in tight) else mark + _whole(text)
