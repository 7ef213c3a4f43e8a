"""The command line: ``python -m d2lmini check | progress | data | run | export | grade``."""

import argparse
import difflib
import os
import signal
import sys

from . import __version__

UNFINISHED = 75  # EX_TEMPFAIL of sysexits.h: try again
INTERRUPTED = 130  # what a shell calls the end by Ctrl-C


def _check(args):
    from .selfcheck import report

    if args.notebook:
        from .exercises import check_file

        for line in check_file(args.notebook):
            print(line)
        return 0
    text, healthy = report()
    print(text)
    return 0 if healthy else 1


def _progress(args):
    from .exercises import progress

    progress(args.chapter, read=args.read, write=args.write)
    return 0


def _data(args):
    from .data import registry

    if args.fetch:
        registry.fetch(args.fetch)
    print(registry.status())
    return 0


def _run(args):
    from . import experiments
    from .lab import runner
    from .lab.overview import overview
    from .lab.parts import Unfinished
    from .training.checkpoint import CheckpointError

    if args.list or args.name is None:
        words = "preset", "device", "out", "checkpoint", "max_minutes"
        given = [f"--{word.replace('_', '-')}" for word in words if getattr(args, word)]
        if given and not args.list:
            names = ", ".join(experiments.names())
            raise ValueError(f"{' and '.join(given)} without the name of an experiment, expected one of {names}")
        names = [name for name in experiments.names() if (args.name or "") in name]
        if not names:
            experiments.find(args.name)  # says which there are
        print(overview(map(experiments.find, names), args.preset))
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # a run that is told to stop removes its half record
    try:
        experiment = experiments.find(args.name)
        path = runner.run(experiment, args.preset or "cpu", args.device, args.out, args.checkpoint, args.max_minutes)
    except CheckpointError as error:
        raise ValueError(str(error)) from error
    except Unfinished as error:
        print(f"{error}: the same command goes on")
        return UNFINISHED
    print(f"written: {path}")
    return 0


def _export(args):
    from . import experiments
    from .experiments import exported
    from .lab.export import export, overview
    from .training.checkpoint import CheckpointError

    if args.list or args.name is None:
        print(overview(exported.EXPORTS.values(), args.out))
        return 0
    what = exported.find(args.name)
    if not args.checkpoint:
        raise ValueError(f"--checkpoint is missing: the folder of the run of {what.run}")
    try:
        path, costs = export(what, experiments.find(what.experiment), args.checkpoint, args.out, args.record)
    except CheckpointError as error:
        raise ValueError(str(error)) from error
    name = costs["metric"]
    print(f"{costs['kind']}: {name} {costs['before'][name]:.5g} before, {costs['after'][name]:.5g} after")
    print(f"written: {path}, {costs['bytes']:,} bytes")
    return 0


def _grade(args):
    from .exercises import grade
    from .exercises.engine.judge import fresh_seed
    from .exercises.grading.journal import kept_seed
    from .exercises.grading.table import totals

    seed = args.seed
    if seed is None and (seed := kept_seed(args.csv)) is not None:
        print(f"going on with what was judged for {args.csv} before")
    seed = fresh_seed() if seed is None else seed
    names = "gradebook", "gradescope", "reports"
    given = {"problem_set": args.set} | {name: getattr(args, name) for name in names}
    rows = grade(args.folder, args.csv, seed=seed, jobs=args.jobs, unsafe=args.unsafe, **given)
    print(totals(rows))
    print(f"written: {', '.join(filter(None, (args.csv, args.gradebook)))}; the same inputs again with --seed {seed}")
    return 0


def _exercise_new(args):
    from .exercises.authoring import begin

    path = begin(args.key, args.folder)
    print(f"written: {path}; what it lacks: python -m d2lmini exercise audit {path}")
    return 0


def _exercise_audit(args):
    from .exercises.authoring import lacks

    problems = [problem for file in args.files for problem in lacks(file, args.seconds)]
    print("\n".join(problems) or f"{', '.join(args.files)}: in order")
    return int(bool(problems))


def _kept(args):
    """Return what is kept of a command that was interrupted, the rest of a sentence."""
    goes_on = "and the same command goes on from there"
    if args.run is _grade:
        return f"; the verdicts so far are kept beside {args.csv}, {goes_on}"
    if args.run is not _run or args.list or args.name is None:
        return ""
    if args.checkpoint:
        return f"; what is finished is kept in {args.checkpoint}, {goes_on}"
    return "; nothing is kept of this run, since it had no --checkpoint FOLDER"


def main(argv=None):
    """Run one command; without one, show what there is.

    Returns:
        the exit status: 0; 1 with a message on stderr where something given or here is wrong, 2 where the command line
        is; 75 where ``--max-minutes`` cut a run; or 130 where Ctrl-C did.
    """
    parser = argparse.ArgumentParser(prog="python -m d2lmini", description="Tools of the book, from the shell.")
    parser.add_argument("--version", action="version", version=f"d2lmini {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND")

    check = commands.add_parser("check", help="is everything here that the book needs? or: check one notebook")
    check.add_argument("notebook", nargs="?", metavar="NOTEBOOK", help="check the answers of this notebook instead")
    check.set_defaults(run=_check)

    progress = commands.add_parser("progress", help="which exercises are solved, and in how many tries")
    progress.add_argument("chapter", nargs="?", metavar="CHAPTER", help="two digits: of this chapter alone")
    progress.add_argument("--read", metavar="FILE", help="first add what the book's page or another machine wrote")
    progress.add_argument("--write", metavar="FILE", help="write a copy for the book's page or another machine")
    progress.set_defaults(run=_progress)

    data = commands.add_parser("data", help="data sets: where they are, or how to get them")
    data.add_argument("--fetch", metavar="NAME", help="download this set into the cache and verify it")
    data.set_defaults(run=_data)

    run = commands.add_parser("run", help="run an experiment and record it; --list: what there is")
    run.add_argument("name", nargs="?", metavar="NAME", help="of the experiment; with --list, a part of its name")
    run.add_argument("--list", action="store_true", help="what is recorded, and how long each takes; of NAME, --preset")
    run.add_argument("--preset", help="smoke, cpu (the default), laptop, full, or another one of the experiment's")
    run.add_argument("--device", help="cpu, cuda, cuda:1, mps; default: the best there is")
    run.add_argument("--out", help="folder of the record; default: the results of the package")
    run.add_argument("--checkpoint", metavar="FOLDER", help="keep checkpoints there, and go on from what is there")
    run.add_argument("--max-minutes", metavar="M", type=float, help="stop then, with status 75; needs --checkpoint")
    run.set_defaults(run=_run)

    export = commands.add_parser("export", help="weights of a recorded run as a small file; --list: what there is")
    export.add_argument("name", nargs="?", metavar="NAME", help="of the model")
    export.add_argument("--list", action="store_true", help="all models: sizes, runs, and what rounding costs")
    export.add_argument("--checkpoint", metavar="FOLDER", help="of the run")
    export.add_argument("--record", metavar="FILE", help="of the run; default: the one in the results of the package")
    export.add_argument("--out", metavar="FOLDER", help="of the file and its costs; default: those of the package")
    export.set_defaults(run=_export)

    grade = commands.add_parser("grade", help="grade a folder of notebooks, each in a sandbox of its own")
    grade.add_argument("folder", metavar="FOLDER", help="with the notebooks that were handed in")
    grade.add_argument("--csv", metavar="FILE", required=True, help="where to write the table of verdicts")
    grade.add_argument("--gradebook", metavar="FILE", help="also write a table with one row for each notebook")
    grade.add_argument("--gradescope", metavar="FOLDER", help="also write a results.json for each notebook there")
    grade.add_argument("--reports", metavar="FOLDER", help="also write a page for each student there, in HTML")
    grade.add_argument("--set", metavar="FILE", help="the notebook that you handed out: its parts count, and no others")
    grade.add_argument("--seed", type=int, help="of the inputs, the same for all; default: a fresh one")
    grade.add_argument("--jobs", type=int, help="notebooks judged at once; default: as many as there are processors")
    grade.add_argument("--unsafe", action="store_true", help="without a sandbox: answers can do whatever you can")
    grade.set_defaults(run=_grade)

    exercise = commands.add_parser("exercise", help="an exercise of your own: begin one, or see what one lacks")
    what = exercise.add_subparsers(metavar="WHAT", required=True)
    new = what.add_parser("new", help="write a first document, which works as it is")
    new.add_argument("key", metavar="KEY", help="own-08.9: a chapter, and a number that is free there")
    new.add_argument("--folder", help="where to; default: the one in D2LMINI_EXERCISES, or the current one")
    new.set_defaults(run=_exercise_new)
    audit = what.add_parser("audit", help="do right answers pass, do wrong ones fail, is anything missing?")
    audit.add_argument("files", nargs="+", metavar="FILE", help="documents")
    audit.add_argument("--seconds", type=float, default=1.0, help="for right answers of a part (default: %(default)s)")
    audit.set_defaults(run=_exercise_audit)

    given = sys.argv[1:] if argv is None else list(argv)
    if not given:
        parser.print_help()
        return 0
    if not given[0].startswith("-") and given[0] not in commands.choices:
        near = difflib.get_close_matches(given[0], commands.choices, n=1)
        meant = f"; did you mean {near[0]}?" if near else f", expected {', '.join(commands.choices)}"
        parser.error(f"there is no command {given[0]!r}{meant}")
    args = parser.parse_args(given)
    try:
        status = args.run(args)
        sys.stdout.flush()  # here, where a reader that is gone is caught
        return status
    except BrokenPipeError:  # `| head` has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ValueError, OSError, ImportError, LookupError, FloatingPointError, RuntimeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"stopped{_kept(args)}", file=sys.stderr)
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
