"""The runtime of the models that live in the page.

Its modules are JavaScript with the names of the Python that they stand beside, in its order: `layers.js`,
`multi_head.js`, `transformer.js`, `gpt.js`, ... `tools/bundle.mjs` makes one script of them, from `worker.js`;
`page.py` says how it reaches a page, whose own side is in `d2lmini/figures/page/`.

    tensor.js      float32 tensors in one memory; the matrix product (kernels.js; plain.js where SIMD is missing)
    weights.js     what `d2lmini.trained` reads, dequantised
    tokenizers.js  texts to ids and back, as models/weights/tokenizers.py has it
    models.js      a model by the name of its class
    page.py        `LiveFigure`, and the scripts of the book that models are loaded from
    worker.js      what is asked of a model, in a worker or in slices of the page's own thread
    model_pieces.js
                   a large model that comes in pieces, which models/weights/model_pieces.py makes; quantized.js, its
                   products; prefix_cache.js, what it has read last; real_tasks.js, what it is asked
    learner.js     a model (tiny.js) that learns: `backward` stands beside `forward` in its modules; optimizers.js,
                   losses.js, playground_tasks.js (what is learned), learner_tasks.js (what the worker is asked)
"""
