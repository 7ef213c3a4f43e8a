"""The runtime of the models that live in the page.

Its modules are JavaScript with the names of the Python that they stand beside, in its order: `layers.js`,
`multi_head.js`, `transformer.js`, `gpt.js`, ... `runtime` makes one script of them; `d2lmini.figures.live.page` says
how it reaches a page.

    tensor.js      float32 tensors in one memory; the matrix product (kernels.js; plain.js where SIMD is missing)
    weights.js     what `d2lmini.trained` reads, dequantised
    tokenizers.js  texts to ids and back, as models/weights/tokenizers.py has it
    models.js      a model by the name of its class
    host.js        the page's side: one copy of each model, loaded when a reader asks
    page.py        `LiveFigure`, and the scripts of the book that models are loaded from
    worker.js      what is asked of a model, in a worker or in slices of the page's own thread
    pieces.js      a large model that comes in pieces (models/weights/pieces.py makes them); quantised.js, its products;
                   reading.js, what it has read last; real_tasks.js, what it is asked; piece_sources.js, where they come
                   from: the book's host, files of the reader, the browser's store
    learner.js     a model (tiny.js) that learns: `backward` stands beside `forward` in its modules; optimizers.js,
                   losses.js, playground_tasks.js (what is learned), learner_tasks.js (what the worker is asked)
"""

import re
from functools import cache
from importlib.resources import files

_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./(\w+)\.js";\n', flags=re.M)


def _read(name):
    return files(__name__).joinpath(f"{name}.js").read_text(encoding="utf-8")


def modules(*names):
    """Modules, by default the worker, and before them what they need. Returns: dict of name and source."""
    found = {}

    def visit(module, path=()):
        if module in path:
            raise ValueError(f"modules import each other in a circle: {' -> '.join((*path, module))}")
        if module not in found:
            source = _read(module)
            for _, other in _IMPORT.findall(source):
                visit(other, (*path, module))
            found[module] = source

    for name in names or ("worker",):
        visit(name)
    return found


@cache
def runtime(*names):
    """As one script what `modules` gives, without imports and exports: top-level names are unique. Returns: str.

    Raises:
        ValueError: modules import each other in a circle, or two have one name at the top.
    """
    sources = modules(*names)
    declared = [found for source in sources.values() for found in names_of(source)]
    twice = sorted({found for found in declared if declared.count(found) > 1})
    if twice:
        raise ValueError(f"modules of the runtime share the names {', '.join(twice)}")
    return "".join(re.sub(r"^export ", "", _IMPORT.sub("", source), flags=re.M) for source in sources.values())


def names_of(source):
    """The names that a module declares at the top. Returns: list of str."""
    return re.findall(r"^(?:export )?(?:async )?(?:function\*?|class|const|let) (\w+)", source, flags=re.M)
