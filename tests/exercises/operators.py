"""Single changes of a solution, made in its syntax tree: wrong answers that nobody has to think of.

The mistakes that a document lists are those that students make, and they teach. The changes made here test its check:
nearly all are wrong answers. An operator takes a node of the tree and yields what may stand there instead; its name is
the type of the change.
"""

import ast
import copy
import warnings
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise, zip_longest


def _table(text):
    """Return word -> what it is taken for: ``"Lt-LtE-Gt ..."``."""
    return {word: others for word, *others in (entry.split("-") for entry in text.split())}


OPERATIONS = _table(
    "Add-Sub Sub-Add Mult-Div Div-Mult FloorDiv-Mod Mod-FloorDiv MatMult-Mult Pow-Mult BitAnd-BitOr BitOr-BitAnd "
    "And-Or Or-And Lt-LtE-Gt LtE-Lt-GtE Gt-GtE-Lt GtE-Gt-LtE Eq-NotEq NotEq-Eq Is-IsNot IsNot-Is In-NotIn NotIn-In"
)
FUNCTIONS = _table(
    "sum-mean mean-sum max-min min-max amax-amin amin-amax argmax-argmin argmin-argmax maximum-minimum minimum-maximum "
    "any-all all-any tril-triu triu-tril zeros-ones ones-zeros zeros_like-ones_like ones_like-zeros_like floor-ceil "
    "ceil-floor round-floor cos-sin sin-cos cat-stack stack-cat rand-randn randn-rand softmax-log_softmax exp-expm1 "
    "log_softmax-softmax sigmoid-tanh tanh-sigmoid logsigmoid-sigmoid relu-tanh log-log1p log2-log sqrt-square "
    "square-abs abs-square cumsum-cumprod logsumexp-amax median-mean std-var comb-perm removesuffix-removeprefix"
)
ORDERED = (ast.Sub, ast.Div, ast.FloorDiv, ast.Pow, ast.MatMult)  # the order of their operands matters
BOTH_COUNT = (ast.Add, ast.Sub, ast.Mult, ast.MatMult, ast.BitAnd, ast.BitOr)  # either operand is a plausible result
MODULES = {"torch", "F", "nn", "math", "d2l", "time"}
UNASKED = {"device", "strict"}  # options that make no difference on the CPU and for equal lengths
OF_ITS_KIND = {"dtype", "device"}  # of which tensor they are taken is one where all have the same
SYMMETRIC = {"transpose", "maximum", "minimum", "max", "min", "equal", "isclose", "mse_loss", "cosine_similarity"}
NEEDED = {"range", "len", "zip", "enumerate", "dict", "super", "slice", "set", "map"}  # without them it only raises
CONSTANT = {"eye", "arange", "tensor", "ones", "zeros", "full", "new_zeros", "new_full"}  # they have no gradient
TINY = 1e-3  # a smaller number only keeps another from zero: twice as much is as good


@dataclass(frozen=True)
class Change:
    """A wrong answer: the type of the change, the changed line before and after, and the whole source."""

    kind: str
    was: str
    now: str
    source: str


def changes(source, without=()) -> list[Change]:
    """Return every single change of the functions in ``source``, no two of them alike.

    Args:
        without: names of operators that are left out.
    """
    tree = ast.parse(source)
    _drop_docstrings(tree)
    base, names = ast.unparse(tree), _bound(tree)
    operators = [operator for operator in OPERATORS if operator.__name__ not in without]
    found, lines = {base: None}, Counter()
    for holder, key, node in list(_places(tree)):
        for kind, instead in ((op.__name__, new) for op in operators for new in op(node, names)):
            holder[key] = instead
            text = ast.unparse(tree)
            holder[key] = node
            if text not in found and _compiles(text):
                was, now = _differing(base, text)
                lines[was, now] += 1
                place = f"  # {lines[was, now]}" if lines[was, now] > 1 else ""  # the line may be there twice
                found[text] = Change(kind, was, now + place, text)
    return [change for change in found.values() if change]


def _drop_docstrings(tree):
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]


def _bound(tree):
    """Count how often each name is bound, in the order in which they are for the first time."""
    names = [node for node in ast.walk(tree) if isinstance(node, (ast.arg, ast.Name))]
    names = [node for node in names if isinstance(node, ast.arg) or isinstance(node.ctx, ast.Store)]
    names.sort(key=lambda node: (node.lineno, node.col_offset))
    return Counter(getattr(node, "arg", None) or node.id for node in names)


def _places(node):
    """Yield triples (holder, key, a node below this one), where ``holder[key]`` is that node."""
    for field, value in ast.iter_fields(node):
        for key, below in enumerate(value) if isinstance(value, list) else [(field, value)]:
            if isinstance(below, ast.AST) and not _is_left_alone(below):
                yield (value if isinstance(value, list) else vars(node)), key, below
                if not _is_negative(below):
                    yield from _places(below)


def _is_left_alone(node):
    """What readers are given (arguments), what is a message, and what makes no difference."""
    if isinstance(node, ast.keyword):
        return node.arg in UNASKED | OF_ITS_KIND
    if isinstance(node, ast.Attribute):
        return node.attr in OF_ITS_KIND or node.attr.startswith("new_")
    return isinstance(node, (ast.arguments, ast.JoinedStr, ast.Raise))


def _is_negative(node):
    """Whether a node is a number with a minus, which is taken as a whole."""
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant)


def _compiles(text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of an index that is none
        try:
            return bool(compile(text, "change", "exec"))
        except SyntaxError:
            return False


def _differing(before, after):
    """The first line that differs, in both."""
    lines = zip_longest(before.splitlines(), after.splitlines(), fillvalue="")
    return next((one.strip(), other.strip()) for one, other in lines if one != other)


def _but(node, **fields):
    """A copy of a node with other fields."""
    node = copy.copy(node)
    vars(node).update(fields)
    return node


def _name(call):
    """The name of a function that is called, without its module; empty where nothing is called."""
    function = getattr(call, "func", None)
    return getattr(function, "attr", getattr(function, "id", ""))


def _is_method(call):
    """Whether something before the dot is worked on, which is no module."""
    root = call.func
    while isinstance(root, ast.Attribute):
        root = root.value
    return isinstance(call.func, ast.Attribute) and getattr(root, "id", "") not in MODULES


# the operators, each of which gets the names that are bound in the solution, too


def term_left_out(node, names):
    if isinstance(node, ast.BinOp):
        yield from (node.left, node.right) if isinstance(node.op, BOTH_COUNT) else (node.left,)
    elif isinstance(node, ast.BoolOp):
        yield from node.values
    elif isinstance(node, ast.UnaryOp) and not _is_negative(node):
        yield node.operand


def operation_exchanged(node, names):
    if isinstance(node, (ast.BinOp, ast.BoolOp, ast.AugAssign)):
        yield from (_but(node, op=getattr(ast, other)()) for other in OPERATIONS.get(type(node.op).__name__, ()))
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        yield from (_but(node, ops=[getattr(ast, other)()]) for other in OPERATIONS[type(node.ops[0]).__name__])


def operands_swapped(node, names):
    if isinstance(node, ast.BinOp) and isinstance(node.op, ORDERED):
        yield _but(node, left=node.right, right=node.left)


def number_changed(node, names):
    value = -node.operand.value if _is_negative(node) else getattr(node, "value", None)
    if not isinstance(node, ast.Constant) and not _is_negative(node):
        return
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, int):
        yield from map(ast.Constant, (value - 1, value + 1) if abs(value) < 1000 else (2 * value,))
    elif isinstance(value, float):
        yield ast.Constant(value * (2 if abs(value) >= TINY else 1000) or 1.0)


def option_left_out(node, names):
    if isinstance(node, ast.Call):
        for option in node.keywords:
            if option.arg and option.arg not in UNASKED:
                yield _but(node, keywords=[other for other in node.keywords if other is not option])
        if len(node.args) > 1:
            yield _but(node, args=node.args[:-1])


def arguments_swapped(node, names):
    if isinstance(node, ast.Call) and _name(node) not in SYMMETRIC:
        for i, (one, other) in enumerate(pairwise(node.args)):
            yield _but(node, args=[*node.args[:i], other, one, *node.args[i + 2 :]])


def function_exchanged(node, names):
    field = "attr" if isinstance(getattr(node, "func", None), ast.Attribute) else "id"
    for other in FUNCTIONS.get(_name(node), ()):
        yield _but(node, func=_but(node.func, **{field: other}))


def call_left_out(node, names):
    if isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
        yield node.value
    elif not isinstance(node, ast.Call) or _name(node) == "item":  # a tensor of one entry is taken for a number
        return
    elif _is_method(node):
        yield node.func.value
    elif node.args and _name(node) not in NEEDED:
        yield node.args[0]


def index_left_out(node, names):
    if isinstance(node, ast.Slice):
        yield from (_but(node, **{end: None}) for end in ("lower", "upper", "step") if getattr(node, end))
    elif isinstance(node, ast.Subscript) and not isinstance(getattr(node.slice, "value", None), str):
        yield from [node.value] if isinstance(node.ctx, ast.Load) else ()


def statement_left_out(node, names):
    """One that binds a name for the only time stays: what follows would only raise."""
    if isinstance(node, ast.Assign):
        targets = [name.id for name in ast.walk(node.targets[0]) if isinstance(name, ast.Name)]
        if all(names[name] > 1 for name in targets) or isinstance(node.targets[0], ast.Subscript):
            yield ast.Pass()
    elif isinstance(node, (ast.AugAssign, ast.Expr, ast.If, ast.For, ast.While, ast.Continue, ast.Break)):
        yield ast.Pass()


def condition_changed(node, names):
    if isinstance(node, ast.IfExp):
        yield from (node.body, node.orelse, _but(node, body=node.orelse, orelse=node.body))
    elif isinstance(node, ast.If):
        yield _but(node, test=ast.UnaryOp(ast.Not(), node.test))
    elif isinstance(node, ast.comprehension) and node.ifs:
        yield _but(node, ifs=[])


def name_exchanged(node, names):
    """A name is taken for the one that is bound before it, or after it."""
    known = [name for name in names if name != "self"]
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in known:
        at = known.index(node.id)
        yield from (_but(node, id=other) for other in (*known[max(at - 1, 0) : at], *known[at + 1 : at + 2]))


def order_reversed(node, names):
    if isinstance(node, (ast.Tuple, ast.List)) and isinstance(node.ctx, ast.Load) and len(node.elts) > 1:
        yield _but(node, elts=node.elts[::-1])
    elif (
        isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Tuple)
        and not isinstance(node.value, ast.Tuple)
    ):
        yield _but(node, targets=[_but(node.targets[0], elts=node.targets[0].elts[::-1])])


def detached(node, names):
    fields = ("left", "right") if isinstance(node, ast.BinOp) else ("value",) if isinstance(node, ast.Assign) else ()
    for field in fields:
        value = getattr(node, field)
        made = {_name(below) for below in ast.walk(value)} & CONSTANT
        if isinstance(value, (ast.Name, ast.Call, ast.BinOp)) and not made:
            yield _but(node, **{field: ast.Call(ast.Attribute(value, "detach", ast.Load()), [], [])})


OPERATORS = (
    term_left_out,
    operation_exchanged,
    operands_swapped,
    number_changed,
    option_left_out,
    arguments_swapped,
    function_exchanged,
    call_left_out,
    index_left_out,
    statement_left_out,
    condition_changed,
    name_exchanged,
    order_reversed,
    detached,
)
