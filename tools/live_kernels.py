"""Writes the matrix products of the live models: d2lmini/figures/live/kernels.js, WebAssembly SIMD in base64.

Three products of float32 matrices, whose rows may lie apart (``lda`` floats from row to row of A):

    nn: C[n, m] = A[n, k] B[k, m]        nt: C[n, m] = A[n, k] B[m, k]^T        tn: C[n, m] = A[k, n]^T B[k, m]

`nt` is a linear layer as torch keeps its weights, and queries by keys; `nn` is weights by values; `tn` is the gradient
of a linear layer's weights, and adds to what is in C where its last argument is not 0. Blocks of C stay in registers:
four rows and two columns (nt) or eight (nn, tn); what is left over is done row by row, column by column.

Products of quantised matrices come from tools/_quantized_kernels.py.

    python -m tools.live_kernels
"""

import base64

from tools import _quantized_kernels
from tools._generated import ROOT, main, put

PATH = ROOT / "d2lmini" / "figures" / "live" / "kernels.js"
_HEAD = "// Written by tools/live_kernels.py: the matrix products in WebAssembly.\n"


def _get(name):
    return f"(local.get ${name})"


def _rows(pointer, stride, number):
    """Addresses of so many rows from a pointer on."""
    first = _get(pointer)
    return [first] + [f"(i32.add {first} (i32.mul (i32.const {i}) {_get(stride)}))" for i in range(1, number)]


def _loop(label, counter, step, limit, body):
    """Do the body while a counter, to which ``step`` is added each time, does not go past a limit."""
    return (
        f"(block $end_{label} (loop ${label} (br_if $end_{label} (i32.gt_s (i32.add {_get(counter)} "
        f"(i32.const {step})) {limit})) {body} "
        f"(local.set ${counter} (i32.add {_get(counter)} (i32.const {step}))) (br ${label})))"
    )


def _advance(pointer, by):
    return f"(local.set ${pointer} (i32.add {_get(pointer)} {by}))"


def _add(kind, target, product):
    return f"(local.set ${target} ({kind}.add {_get(target)} {product}))"


_BLOCK = (
    "(param $a i32) (param $lda i32) (param $b i32) (param $ldb i32) (param $c i32) (param $ldc i32) (param $k i32)"
)


def _nt_block(rows, columns):
    """C's rows x columns: each a dot product, four terms at a time."""
    places = [(i, j) for i in range(rows) for j in range(columns)]
    accumulators = " ".join(f"(local $s{i}{j} v128) (local $t{i}{j} f32)" for i, j in places)
    loads = " ".join(f"(local $y{j} v128)" for j in range(columns))
    wide = " ".join(f"(local.set $y{j} (v128.load {row}))" for j, row in enumerate(_rows("b", "ldb", columns)))
    for i, row in enumerate(_rows("a", "lda", rows)):
        wide += f"(local.set $x (v128.load {row}))"
        wide += "".join(
            _add("f32x4", f"s{i}{j}", f"(f32x4.mul (local.get $x) (local.get $y{j}))") for j in range(columns)
        )
    wide += _advance("a", "(i32.const 16)") + _advance("b", "(i32.const 16)")
    sums = "".join(
        f"(local.set $t{i}{j} (f32.add (f32.add (f32x4.extract_lane 0 (local.get $s{i}{j})) "
        f"(f32x4.extract_lane 1 (local.get $s{i}{j}))) (f32.add (f32x4.extract_lane 2 (local.get $s{i}{j})) "
        f"(f32x4.extract_lane 3 (local.get $s{i}{j})))))"
        for i, j in places
    )
    narrow = "".join(
        _add("f32", f"t{i}{j}", f"(f32.mul (f32.load {a}) (f32.load {b}))")
        for i, a in enumerate(_rows("a", "lda", rows))
        for j, b in enumerate(_rows("b", "ldb", columns))
    )
    narrow += _advance("a", "(i32.const 4)") + _advance("b", "(i32.const 4)")
    stores = "".join(
        f"(f32.store offset={4 * j} {row} (local.get $t{i}{j}))"
        for i, row in enumerate(_rows("c", "ldc", rows))
        for j in range(columns)
    )
    return (
        f"(func $nt_{rows}x{columns} {_BLOCK} (local $p i32) (local $x v128) {loads} {accumulators} "
        f"{_loop('wide', 'p', 4, _get('k'), wide)} {sums} {_loop('narrow', 'p', 1, _get('k'), narrow)} {stores})"
    )


def _numbers(name, rows):
    """Loads of the next number of each row of A (nn), or of each column (tn), by what does the load."""
    places = _rows("a", "lda", rows) if name == "nn" else [f"offset={4 * i} {_get('a')}" for i in range(rows)]
    return lambda load: [f"({load} {place})" for place in places]


def _next(name):
    """To the next number of A's rows (nn) or columns (tn), and to B's next row."""
    return _advance("a", "(i32.const 4)" if name == "nn" else _get("lda")) + _advance("b", _get("ldb"))


def _begin(name, loads):
    """What is in C, where tn adds to it; `loads` is of pairs of a local and its load."""
    if name == "nn":
        return ""
    sets = "".join(f"(local.set ${target} {load})" for target, load in loads)
    return f"(if (local.get $add) (then {sets}))"


def _parameters(name):
    return _BLOCK + (" (param $add i32)" if name == "tn" else "")


def _wide_block(name, rows, quads):
    """C's rows x (4 quads), of nn or tn: rows of B, each times a number of A."""
    places = [(i, j) for i in range(rows) for j in range(quads)]
    accumulators = " ".join(f"(local $s{i}{j} v128)" for i, j in places)
    loads = " ".join(f"(local $y{j} v128)" for j in range(quads))
    body = "".join(f"(local.set $y{j} (v128.load offset={16 * j} {_get('b')}))" for j in range(quads))
    for i, number in enumerate(_numbers(name, rows)("v128.load32_splat")):
        body += f"(local.set $x {number})"
        body += "".join(
            _add("f32x4", f"s{i}{j}", f"(f32x4.mul (local.get $x) (local.get $y{j}))") for j in range(quads)
        )
    body += _next(name)
    c = _rows("c", "ldc", rows)
    begin = _begin(name, [(f"s{i}{j}", f"(v128.load offset={16 * j} {c[i]})") for i, j in places])
    stores = "".join(f"(v128.store offset={16 * j} {c[i]} (local.get $s{i}{j}))" for i, j in places)
    return (
        f"(func ${name}_{rows}x{4 * quads} {_parameters(name)} (local $p i32) (local $x v128) {loads} {accumulators} "
        f"{begin} {_loop('each', 'p', 1, _get('k'), body)} {stores})"
    )


def _column(name, rows):
    """C's rows x 1, of nn or tn."""
    numbers = _numbers(name, rows)("f32.load")
    body = "".join(
        _add("f32", f"t{i}", f"(f32.mul {number} (f32.load {_get('b')}))") for i, number in enumerate(numbers)
    )
    body += _next(name)
    c = _rows("c", "ldc", rows)
    begin = _begin(name, [(f"t{i}", f"(f32.load {row})") for i, row in enumerate(c)])
    stores = "".join(f"(f32.store {row} (local.get $t{i}))" for i, row in enumerate(c))
    sums = " ".join(f"(local $t{i} f32)" for i in range(rows))
    return (
        f"(func ${name}_{rows}x1 {_parameters(name)} (local $p i32) {sums} {begin} "
        f"{_loop('each', 'p', 1, _get('k'), body)} {stores})"
    )


def _product(name, blocks):
    """A whole product from its blocks: a list of rows and the widths of columns to try, the widest first."""
    across = "(i32.mul (local.get $j) (local.get $ldb))" if name == "nt" else "(i32.mul (local.get $j) (i32.const 4))"
    more = " (local.get $add)" if name == "tn" else ""
    code = ""
    for rows, widths in blocks:
        by_rows = f"(i32.mul (i32.const {rows}) {{}})".format
        inner = "(local.set $j (i32.const 0))"
        for width in widths:
            call = (
                f"(call ${name}_{rows}x{width} {_get('a')} {_get('lda')} (i32.add {_get('b')} {across}) {_get('ldb')} "
                f"(i32.add {_get('c')} (i32.mul {_get('j')} (i32.const 4))) {_get('ldc')} {_get('k')}{more})"
            )
            inner += _loop(f"columns{rows}{width}", "j", width, _get("m"), call)
        inner += _advance("a", f"(i32.const {4 * rows})" if name == "tn" else by_rows(_get("lda")))
        inner += _advance("c", by_rows(_get("ldc")))
        code += _loop(f"rows{rows}", "i", rows, _get("n"), inner)
    # strides come in floats and are used in bytes
    scaled = "".join(f"(local.set ${name} (i32.shl {_get(name)} (i32.const 2)))" for name in ("lda", "ldb", "ldc"))
    names = ("a", "lda", "b", "ldb", "c", "ldc", "n", "k", "m", *(["add"] if name == "tn" else []))
    parameters = " ".join(f"(param ${x} i32)" for x in names)
    return f'(func (export "{name}") {parameters} (local $i i32) (local $j i32) {scaled} {code})'


def text():
    """The module as WebAssembly text. Returns: str."""
    functions = [
        *(_nt_block(*size) for size in ((4, 2), (4, 1), (1, 4), (1, 1))),
        *(_wide_block(name, *size) for name in ("nn", "tn") for size in ((4, 2), (1, 4))),
        *(_column(name, rows) for name in ("nn", "tn") for rows in (4, 1)),
        _product("nt", [(4, (2, 1)), (1, (4, 1))]),
        _product("nn", [(4, (8, 1)), (1, (16, 1))]),
        _product("tn", [(4, (8, 1)), (1, (16, 1))]),
        *_quantized_kernels.functions(),
    ]
    return '(module (import "page" "memory" (memory 1))' + "\n".join(functions) + ")"


def source():
    """What kernels.js is to hold. Returns: str.

    Raises:
        ImportError: wasmtime, which makes the binary of the text, is not installed.
    """
    import wasmtime

    code = base64.b64encode(wasmtime.wat2wasm(text())).decode()
    return f'{_HEAD}export const KERNELS =\n  "{code}";\n'


def sync(check):
    """Brings kernels.js to what is written here. Returns: list of what was out of step; without wasmtime: none."""
    try:
        text = source()
    except ImportError:
        print("not looked at: kernels.js, which wasmtime makes: pip install -r requirements.txt")
        return []
    return put(PATH, text, check)


if __name__ == "__main__":
    main(sync, command="python -m tools.live_kernels")
