"""Products of quantised matrices in WebAssembly text: what tools/live_kernels.py adds to those of float32.

The numbers X that come in are rounded to 16 bits, a scale for each 32: so one instruction multiplies eight of them.

    quantize    a row of k floats to integers x; of each 32 the scale, and the sum times that, behind each other
    int8        C[n, m] = X[n, k] W[m, k]^T, W in 8 bits with a scale a row
    q4_1        the same, W in blocks of 32: 4 bits q, a scale d, a minimum b; a weight is d q + b
    spread_int8, spread_q4_1    rows of such a matrix as floats

A block of q4_1 is eight lanes of 16 bits: lane j holds the weights j, 8 + j, 16 + j and 24 + j, the lowest bits first.
Every k is a multiple of 32.
"""

ROWS = 4, 1  # of X at once
_ZERO = "(v128.const i32x4 0 0 0 0)"
_MASK = "(v128.const i16x8 15 15 15 15 15 15 15 15)"
_ONES = "(v128.const i16x8 1 1 1 1 1 1 1 1)"


def _get(name):
    return f"(local.get ${name})"


def _set(name, value):
    return f"(local.set ${name} {value})"


def _plus(a, b):
    return f"(i32.add {a} {b})"


def _times(a, b):
    return f"(i32.mul {a} {b})"


def _const(number):
    return f"(i32.const {number})"


def _advance(name, by):
    return _set(name, _plus(_get(name), _const(by) if isinstance(by, int) else by))


def _load(pointer, offset=0, what="v128.load"):
    return f"({what} offset={offset} {pointer})"


def _sum(kind, lanes):
    """The four lanes of a local, added."""
    a, b, c, d = (f"({kind}x4.extract_lane {i} {lanes})" for i in range(4))
    return f"({kind}.add ({kind}.add {a} {b}) ({kind}.add {c} {d}))"


def _dot(a, b):
    return f"(i32x4.dot_i16x8_s {a} {b})"


def _add_all(kind, terms):
    first, *rest = terms
    for term in rest:
        first = f"({kind}.add {first} {term})"
    return first


def _loop(counter, limit, step, body):
    """The body while the counter, from 0 in steps, is below the limit; at least once."""
    again = f"(br_if $l_{counter} (i32.lt_u (local.tee ${counter} {_plus(_get(counter), _const(step))}) {limit}))"
    return f"{_set(counter, _const(0))} (loop $l_{counter} {body} {again})"


def _function(name, parameters, locals_, body, export=False):
    head = f'(func (export "{name}")' if export else f"(func ${name}"
    given = " ".join(f"(param ${one} i32)" for one in parameters.split())
    own = " ".join(f"(local ${one} {kind})" for kind, names in locals_.items() for one in names.split())
    return f"{head} {given} {own} {body})"


def _each(rows, pattern):
    return " ".join(pattern.format(t) for t in range(rows))


def _begin_rows(rows):
    """Pointers x0, x1, ... to rows of X, as a row of W begins."""
    firsts = [_get("x")] + [_plus(_get(f"x{t}"), _times(_get("k"), _const(2))) for t in range(rows - 1)]
    return "".join(_set(f"x{t}", first) for t, first in enumerate(firsts))


def _end_row(rows, result):
    """A number of each row of C; then to C's next column."""
    places = [_plus(_get("c"), _times(_get("ldc"), _const(t))) for t in range(rows)]
    return "".join(f"(f32.store {place} {result(t)})" for t, place in enumerate(places)) + _advance("c", 4)


def _of_block(t):
    """Where the scale and the sum of a block of X's row t are."""
    return _plus(_get("at"), _times(_get("ldof"), _const(t))) if t else _get("at")


def _row_of(product):
    """A product of all of W's rows; rows of `of` are 8 bytes a block of 32."""
    return _set("ldof", f"(i32.shr_u {_get('k')} {_const(2)})") + _loop("i", _get("m"), 1, product)


def _int8_rows(rows):
    step = "".join(_set(f"w{i}", _load(_get("w"), 8 * i, "v128.load8x8_s")) for i in range(4))
    for t in range(rows):
        total = _add_all("i32x4", [_dot(_get(f"w{i}"), _load(_get(f"x{t}"), 16 * i)) for i in range(4)])
        scaled = f"(f32x4.mul (v128.load32_splat {_of_block(t)}) (f32x4.convert_i32x4_s {total}))"
        step += _set(f"s{t}", f"(f32x4.add {_get(f's{t}')} {scaled})") + _advance(f"x{t}", 64)
    step += _advance("w", 32) + _advance("at", 8)
    start = _begin_rows(rows) + _set("at", _get("of")) + "".join(_set(f"s{t}", _ZERO) for t in range(rows))

    def result(t):
        return f"(f32.mul {_load(_get('d'), 0, 'f32.load')} {_sum('f32', _get(f's{t}'))})"

    row = start + _loop("j", _get("k"), 32, step) + _end_row(rows, result) + _advance("d", 4)
    locals_ = {"i32": f"i j at ldof {_each(rows, 'x{}')}", "v128": f"{_each(4, 'w{}')} {_each(rows, 's{}')}"}
    return _function(f"int8_{rows}", "w d x of c ldc k m", locals_, _row_of(row))


def _levels():
    """The 4 bits of a block as w0 to w3, eight lanes each."""
    code = _set("u", _load(_get("q")))
    for i in range(4):
        shifted = f"(i16x8.shr_u {_get('u')} {_const(4 * i)})" if i else _get("u")
        code += _set(f"w{i}", shifted if i == 3 else f"(v128.and {shifted} {_MASK})")
    return code


def _q4_1_rows(rows):
    step = _levels() + _set("u", _load(_get("d"), 0, "v128.load32_splat"))
    for t in range(rows):
        total = _add_all("i32x4", [_dot(_get(f"w{i}"), _load(_get(f"x{t}"), 16 * i)) for i in range(4)])
        scale = f"(f32x4.mul {_get('u')} (v128.load32_splat {_of_block(t)}))"
        scaled = f"(f32x4.mul {scale} (f32x4.convert_i32x4_s {total}))"
        step += _set(f"s{t}", f"(f32x4.add {_get(f's{t}')} {scaled})")
        lowest = f"(f32.mul {_load(_get('b'), 0, 'f32.load')} {_load(_of_block(t), 4, 'f32.load')})"
        step += _set(f"e{t}", f"(f32.add {_get(f'e{t}')} {lowest})") + _advance(f"x{t}", 64)
    step += _advance("q", 16) + _advance("d", 4) + _advance("b", 4) + _advance("at", 8)
    start = _begin_rows(rows) + _set("at", _get("of"))
    start += "".join(_set(f"s{t}", _ZERO) + _set(f"e{t}", "(f32.const 0)") for t in range(rows))

    def result(t):
        return f"(f32.add {_get(f'e{t}')} {_sum('f32', _get(f's{t}'))})"

    row = start + _loop("j", _get("k"), 32, step) + _end_row(rows, result)
    locals_ = {
        "i32": f"i j at ldof {_each(rows, 'x{}')}",
        "v128": f"u {_each(4, 'w{}')} {_each(rows, 's{}')}",
        "f32": _each(rows, "e{}"),
    }
    return _function(f"q4_1_{rows}", "q d b x of c ldc k m", locals_, _row_of(row))


def _product(name, weights):
    """A whole product, four rows of X at a time, then one by one; `n` counts down."""
    body = ""
    for rows in ROWS:
        given = " ".join(map(_get, f"{weights} x of c ldc k m".split()))
        by = _advance("x", _times(_get("k"), _const(2 * rows))) + _advance("n", -rows)
        by += _advance("of", _times(f"(i32.shr_u {_get('k')} {_const(2)})", _const(rows)))
        by += _advance("c", _times(_get("ldc"), _const(rows)))
        left = f"(br_if $end_{rows} (i32.lt_s {_get('n')} {_const(rows)}))"
        body += f"(block $end_{rows} (loop $l_{rows} {left} (call ${name}_{rows} {given}) {by} (br $l_{rows})))"
    start = _set("ldc", f"(i32.shl {_get('ldc')} {_const(2)})")
    return _function(name, f"{weights} x of c ldc n k m", {}, start + body, export=True)


def _quantize():
    largest = _set("v", f"(f32x4.abs {_load(_get('a'))})")
    largest += "".join(
        _set("v", f"(f32x4.max {_get('v')} (f32x4.abs {_load(_get('a'), 16 * i)}))") for i in range(1, 8)
    )
    a, b, c, d = (f"(f32x4.extract_lane {i} {_get('v')})" for i in range(4))
    step = largest + _set("most", f"(f32.max (f32.max (f32.max {a} {b}) (f32.max {c} {d})) (f32.const 1e-30))")
    step += _set("scale", f"(f32.div {_get('most')} (f32.const 32767))")
    step += _set("factor", f"(f32x4.splat (f32.div (f32.const 32767) {_get('most')}))") + _set("u", _ZERO)

    def rounded(offset):
        scaled = f"(f32x4.mul {_load(_get('a'), offset)} {_get('factor')})"
        return f"(i32x4.trunc_sat_f32x4_s (f32x4.nearest {scaled}))"

    for i in range(4):
        step += _set("v", f"(i16x8.narrow_i32x4_s {rounded(32 * i)} {rounded(32 * i + 16)})")
        step += f"(v128.store offset={16 * i} {_get('x')} {_get('v')})"
        step += _set("u", f"(i32x4.add {_get('u')} {_dot(_get('v'), _ONES)})")
    step += f"(f32.store {_get('of')} {_get('scale')})"
    total = f"(f32.convert_i32_s {_sum('i32', _get('u'))})"
    step += f"(f32.store offset=4 {_get('of')} (f32.mul {_get('scale')} {total}))"
    step += _advance("a", 128) + _advance("x", 64) + _advance("of", 8)
    locals_ = {"i32": "i", "v128": "u v factor", "f32": "most scale"}
    return _function("quantize", "a x of k", locals_, _loop("i", _get("k"), 32, step), export=True)


def _as_floats(lanes, half):
    return f"(f32x4.convert_i32x4_s (i32x4.extend_{half}_i16x8_s {lanes}))"


def _spread_int8():
    step = _set("u", _load(_get("w"), 0, "v128.load8x8_s"))
    for i, half in enumerate(("low", "high")):
        step += f"(v128.store offset={16 * i} {_get('to')} (f32x4.mul {_get('v')} {_as_floats(_get('u'), half)}))"
    step += _advance("w", 8) + _advance("to", 32)
    row = _set("v", _load(_get("d"), 0, "v128.load32_splat")) + _loop("j", _get("k"), 8, step) + _advance("d", 4)
    body = _loop("i", _get("m"), 1, row)
    return _function("spread_int8", "w d to k m", {"i32": "i j", "v128": "u v"}, body, export=True)


def _spread_q4_1():
    step = _levels() + "".join(_set(name, _load(_get(name[-1]), 0, "v128.load32_splat")) for name in ("vd", "vb"))
    for i in range(4):
        for j, half in enumerate(("low", "high")):
            weight = f"(f32x4.add (f32x4.mul {_get('vd')} {_as_floats(_get(f'w{i}'), half)}) {_get('vb')})"
            step += f"(v128.store offset={32 * i + 16 * j} {_get('to')} {weight})"
    step += _advance("q", 16) + _advance("d", 4) + _advance("b", 4) + _advance("to", 128)
    locals_ = {"i32": "i", "v128": f"u vd vb {_each(4, 'w{}')}"}
    body = _set("m", _times(_get("k"), _get("m"))) + _loop("i", _get("m"), 32, step)
    return _function("spread_q4_1", "q d b to k m", locals_, body, export=True)


def functions():
    """Of the module, in WebAssembly text. Returns: list of str."""
    rows = [make(number) for make in (_int8_rows, _q4_1_rows) for number in ROWS]
    products = [_product("int8", "w d"), _product("q4_1", "q d b")]
    return [*rows, *products, _quantize(), _spread_int8(), _spread_q4_1()]
