"""Grading notebooks of strangers: each answer in another process, the verdict in this one.

folder.py         all notebooks of a folder
table.py          what becomes of the verdicts: a table, totals, a page for a student
journal.py        verdicts as they come, so that a killed run goes on
answer_cells.py   the answers of a notebook, of which nothing is trusted
answer.py         the verdicts on the answers of a notebook
sandbox.py        the process that an answer gets, and what it may do
endpoint.py       the program that runs there
remote.py         the judge's end of it
wire.py           what crosses between the two
"""
