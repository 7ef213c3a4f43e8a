"""Which names an answer takes from other cells of its notebook: graded alone it does not find them."""

import ast
import builtins
import dis
import linecache
import symtable
from functools import cache
from types import CodeType, ModuleType

from ..engine.host import functions_of
from ..engine.registry import listed
from ..engine.source import PRELUDE


def assigned(source) -> set[str]:
    """Return what a cell binds on its top level, imports apart; nothing if it is not valid Python."""
    return {s.get_name() for s in _symbols(source) if s.is_assigned()}


def imported(source) -> set[str]:
    """Return the names that a cell imports on its top level."""
    return {s.get_name() for s in _symbols(source) if s.is_imported()}


_INSIDE = "__inside_a_comprehension"  # since Python 3.12 a symbol table takes its names for those of the cell


@cache
def _symbols(source):
    try:
        tree = ast.parse(source)
        for node in ast.walk(tree):
            if isinstance(node, ast.comprehension):
                for name in ast.walk(node.target):
                    if isinstance(name, ast.Name):
                        name.id = _INSIDE
        symbols = symtable.symtable(ast.unparse(tree), "<cell>", "exec").get_symbols()
        return tuple(symbol for symbol in symbols if symbol.get_name() != _INSIDE)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()


def note(answer) -> str:
    """Return a line on what an answer takes from other cells, or "" where that is nothing or cannot be told."""
    try:
        names = [f"`{name}`" for name in borrowed(answer)]
    except Exception:  # what a notebook holds may be of any kind, and a note is no verdict
        return ""
    if not names:
        return ""
    who, what = ("another cell defines", "it") if len(names) == 1 else ("other cells define", "they")
    return f"note: your answer uses {listed(names, 'and')}, which {who}; graded alone {what} will be missing"


def borrowed(answer) -> list[str]:
    """Return the names that an answer, or the rest of its cell, uses and another cell defines.

    A function of the notebook is known by the file of its code, which is another for each cell. Any other value counts
    only if a cell that was run assigns its name, none imports it, and the source of the answer's own cell is at hand.

    Args:
        answer: a function or a class, made in a notebook.
    """
    if not (left := functions_of(answer)):
        return []
    home, namespace = left[0].__code__.co_filename, left[0].__globals__
    own = "".join(linecache.getlines(home))
    cells = [cell for cell in namespace.get("In", ()) if isinstance(cell, str)]  # what IPython ran, as Python
    elsewhere, brought = set().union(*map(assigned, cells)), set().union(*map(imported, cells))
    known = vars(builtins).keys() | imported(PRELUDE) | assigned(own)

    def strange(name, functions):
        value = namespace[name]
        if name in known or isinstance(value, ModuleType):
            return False
        if functions and not isinstance(value, type):
            return functions[0].__globals__ is namespace and functions[0].__code__.co_filename != home
        return bool(own) and name in elsewhere and name not in brought

    names, is_strange = {s.get_name() for s in _symbols(own) if s.is_referenced()}, {}
    while names or left:
        if left:
            names |= _looked_up(left.pop().__code__)
        for name in names - is_strange.keys():
            functions = functions_of(namespace[name]) if name in namespace else []
            left += [f for f in functions if f.__code__.co_filename == home]
            is_strange[name] = name in namespace and strange(name, functions)
        names = set()
    return sorted(name for name in is_strange if is_strange[name])


def _looked_up(code):
    """Return the names that code, and what is nested in it, looks up in its globals."""
    steps = [(i.opname, i.argval) for i in dis.get_instructions(code)]
    names = {name for step, name in steps if step in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")}
    names -= {name for step, name in steps if step == "STORE_NAME"}  # of a class body
    return names.union(*(_looked_up(c) for c in code.co_consts if isinstance(c, CodeType)))
