"""The table of experiments and their presets."""

from d2lmini import experiments, results
from d2lmini.__main__ import main


def test_the_overview_tells_what_is_recorded_and_what_is_missing(capsys):
    assert main(["run", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = {tuple(line.split()[:2]): line for line in lines[1:]}
    assert rows.keys() == {(name, p) for name in experiments.names() for p in experiments.find(name).PRESETS}
    assert len(rows) == len(lines) - 1
    for (name, preset), line in rows.items():
        if (name, preset) in results.recorded():
            record = results.load(name, preset)
            assert record["date"][:10] in line and f"{record['wall_s'] / 60:.1f} min" in line
            assert line.endswith(record["device"]["name"])
        else:
            assert ("never" if preset in ("smoke", "cpu") else "missing") in line
        assert results.WAITING.get((name, preset), "") in line
    assert main(["run"]) == 0
    assert capsys.readouterr().out.splitlines() == lines
