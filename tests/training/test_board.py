"""The live curve: drawn in notebooks alone, seldom enough, and whole at the end."""

import math
import statistics
import time

import pytest
from toy_line import fit

from d2lmini.training import ProgressBoard
from d2lmini.training import board as board_module


def test_board_averages_points():
    board = ProgressBoard("epoch")
    for i in range(7):
        board.draw(i, 10 * i, "a", every_n=3)
    board.draw(5, 1.5, "b")
    assert board.points == {"a": [[1, 4], [10, 40]], "b": [[5], [1.5]]} and str(board) == "a 40, b 1.5"


def test_nothing_is_drawn_outside_of_notebooks(monkeypatch):
    monkeypatch.setattr(ProgressBoard, "show", lambda self: pytest.fail("drawn"))
    fit(epochs=2)


class Cells:
    """What a board needs of a notebook: the end of its cells, and a place to display."""

    def __init__(self, monkeypatch):
        import IPython
        import IPython.display

        self.listeners, self.shown, self.kernel, self.events = [], [], True, self
        monkeypatch.setattr(IPython, "get_ipython", lambda: self)
        monkeypatch.setattr(IPython.display, "display", self.display)

    def register(self, event, function):
        assert event == "post_run_cell"
        self.listeners.append(function)

    def unregister(self, event, function):
        self.listeners.remove(function)

    def display(self, output, raw, display_id):
        self.shown.append([output])
        return self

    def update(self, output, raw):
        self.shown[-1].append(output)

    def end(self):
        for listener in list(self.listeners):
            listener(None)


def test_draws_are_limited_by_time_and_the_cell_ends_with_the_whole_curve(monkeypatch):
    cells, board = Cells(monkeypatch), ProgressBoard()
    for i in range(200):
        board.draw(i, i, "loss")
    assert len(cells.shown[0]) < 5
    cells.end()
    (outputs,) = cells.shown
    assert outputs[-1]["text/plain"] == "loss 199" and outputs[-1]["image/svg+xml"].startswith("<?xml")
    assert cells.listeners == []
    board.draw(200, 200, "loss")  # in another cell, which gets a figure of its own
    cells.end()
    assert [outputs[-1]["text/plain"] for outputs in cells.shown] == ["loss 199", "loss 200"]


def test_a_draw_does_not_take_longer_with_more_points():
    board = ProgressBoard()

    def seconds():
        times = []
        for _ in range(3):
            start = time.process_time()
            size = len(board.svg())
            times.append(time.process_time() - start)
        return statistics.median(times), size

    def add(count):
        for i in range(count):
            board.points.setdefault("loss", [[], []])[0].append(float(i))
            board.points["loss"][1].append(math.sin(i / 7))

    add(500)
    few, small = seconds()
    add(49_500)
    many, large = seconds()
    assert many < 2 * few + 0.05 and large < 2 * small


def test_curves_are_named_in_words_at_their_ends_and_the_keys_stay():
    board = ProgressBoard(xlabel="epoch")
    for label in ("train_loss", "val_loss", "val_acc", "mine"):
        board.draw(0, 1, label)
        board.draw(1, 2, label)
    svg = board.svg()
    for words in ("training loss", "validation loss", "validation accuracy", "mine"):
        assert f">{words}</text>" in svg
    assert list(board.points) == ["train_loss", "val_loss", "val_acc", "mine"] and "legend" not in svg


def test_thinned_curves_keep_their_ends():
    values = [float(i) for i in range(10_001)]
    thin = board_module._thin(values)
    assert len(thin) <= 500 and thin[0] < 20 and thin[-1] > 9980 and thin == sorted(thin)
    assert board_module._thin(values[:500]) == values[:500]


@pytest.mark.slow
def test_an_executed_notebook_has_one_figure_with_the_whole_curve():
    import nbformat
    from nbclient import NotebookClient

    code = """
from d2lmini.training import ProgressBoard
board = ProgressBoard(xlabel="x")
for i in range(300):
    board.draw(i, i * i, "loss", every_n=3)
"""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    (output,) = notebook.cells[0].outputs
    assert output.output_type == "display_data" and output.data["text/plain"] == "loss 8.88e+04"
    assert "<svg" in output.data["image/svg+xml"]
