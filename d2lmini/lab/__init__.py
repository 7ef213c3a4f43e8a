"""What runs, cuts, resumes and records experiments.

An experiment is a module with

    Config     a frozen dataclass of settings, plain values and tuples; ``seeds`` is one of them
    PRESETS    dict from a name to a `Config`: "smoke" (seconds), "cpu" (minutes), "laptop" (the real data), ...
    run        function of ``(config, device, parts=None)`` that returns a dict for JSON

``config`` is one of the presets. ``device`` is the ``torch.device`` to compute on. ``parts`` are the `parts.Parts` of
the run: ``parts(name, work, *args)`` gives what ``work(*args)`` gives, and keeps it, so that a run that was cut or
killed goes on with the next part; None keeps nothing. A seed or a contestant is a part. A training inside of a part is
given ``parts`` and the part's ``name``, and keeps its checkpoints there.

``run`` returns ``metrics``, whose ``"headline"`` is one sentence with the main number; ``curves``; and, where files
were read, ``data``, their SHA-256. All of it is plain and finite.

    runner.py      runs a preset of an experiment, and records it
    parts.py       what is finished of a run is kept, and the run goes on from there
    fit.py         one training inside of a part
    rates.py       the best of several learning rates
    summaries.py   what is written down: thinned curves, several seeds, standard errors
    records.py     a record: what it may hold, at which commit, and how it is written whole or not at all
    device.py      which device is used where none is named, and how a record names it
    export.py      from the checkpoint of a recorded run to a file of weights, and what rounding costs
    overview.py    the table of what is recorded and what is missing

Nothing here knows an experiment by name. `d2lmini.experiments` has them; `benchmarks/` keeps its records alike.
"""
