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
            assert line.endswith(record["device"]["name"].rsplit(", ", 1)[-1])
        else:
            assert ("never" if preset in ("smoke", "cpu") else "missing") in line
        assert len(line) <= 100
        assert results.WAITING.get((name, preset), "")[:20] in line
    assert main(["run"]) == 0
    assert capsys.readouterr().out.splitlines() == lines


def test_the_overview_can_be_narrowed(capsys):
    assert main(["run", "vit", "--list", "--preset", "laptop"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines[1:]] == [["vision_davit", "laptop"], ["vision_vit", "laptop"]]
    assert main(["run", "vit", "--list", "--preset", "large"]) == 1
    assert "none of these experiments has a preset 'large'" in capsys.readouterr().err
    assert main(["run", "visoin_vit"]) == 1
    assert "there is no experiment 'visoin_vit'; did you mean vision_vit?" in capsys.readouterr().err
