"""The runtime of the models that live in the page.

Its modules are JavaScript with the names of the Python that they stand beside, in its order: `layers.js`,
`multi_head.js`, `transformer.js`, `gpt.js`, ... `runtime` makes one script of them; `d2lmini.figures.live.page` says
how it reaches a page.

    tensor.js      float32 tensors in one memory; the matrix product (kernels.js; plain.js where SIMD is missing)
    weights.js     what `d2lmini.trained` reads, dequantised
    models.js      a model by the name of its class
    worker.js      what is asked of a model, in a worker or in slices of the page's own thread
    learner.js     a model (tiny.js) that learns: `backward` stands beside `forward` in its modules; optimizers.js,
                   losses.js, playground_tasks.js (what is learned), learner_tasks.js (what the worker is asked)
"""

import re
from functools import cache
from importlib.resources import files

_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./(\w+)\.js";\n', flags=re.M)


def _read(name):
    return files(__name__).joinpath(f"{name}.js").read_text(encoding="utf-8")


def modules(name="worker"):
    """The modules that one needs, itself the last. Returns: dict of the name of each and its source."""
    found = {}

    def visit(module, path=()):
        if module in path:
            raise ValueError(f"modules import each other in a circle: {' -> '.join((*path, module))}")
        if module not in found:
            source = _read(module)
            for _, other in _IMPORT.findall(source):
                visit(other, (*path, module))
            found[module] = source

    visit(name)
    return found


@cache
def runtime(name="worker"):
    """All modules that one needs as one script, without imports and exports: top-level names are unique. Returns: str.

    Raises:
        ValueError: modules import each other in a circle, or two have one name at the top.
    """
    sources = modules(name)
    names = [found for source in sources.values() for found in _declared(source)]
    twice = sorted({found for found in names if names.count(found) > 1})
    if twice:
        raise ValueError(f"modules of the runtime share the names {', '.join(twice)}")
    return "".join(re.sub(r"^export ", "", _IMPORT.sub("", source), flags=re.M) for source in sources.values())


def _declared(source):
    return re.findall(r"^(?:export )?(?:async )?(?:function\*?|class|const|let) (\w+)", source, flags=re.M)
