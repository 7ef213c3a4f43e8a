"""Grading notebooks of strangers: each answer in another process, the verdict in this one.

folder.py         all notebooks of a folder, and the table of their verdicts
answer_cells.py   the answers of a notebook, of which nothing is trusted
answer.py         the verdict on one answer
sandbox.py        the process that an answer gets, and what it may do
endpoint.py       the program that runs there
remote.py         the judge's end of it
wire.py           what crosses between the two
"""
