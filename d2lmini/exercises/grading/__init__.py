"""Grading notebooks of strangers: each answer in another process, the verdict in this one.

folder.py         all notebooks of a folder
hand_ins.py       which files there are notebooks, and what each is called
notebook_file.py  the cells of such a file, or what it is instead
table.py          what becomes of the verdicts: a table, totals, a page for a student
journal.py        verdicts as they come, so that a killed run goes on
answer_cells.py   the answers of a notebook, of which nothing is trusted
answer.py         the verdicts on the answers of a notebook
process.py        the process that an answer gets, and its time
sandbox.py        where it runs, and what it may do there
fork_server.py    the program there that starts it
endpoint.py       what the process itself does
silent.py         what it has in place of a notebook's front end
remote.py         the judge's end of it
wire.py           what crosses between the two
"""
