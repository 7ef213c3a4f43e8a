"""What a reader sees and keeps: verdicts, hints, what comes next, and the progress so far.

check.py         check, hint, review and reset, which print
front_end.py     plain text in a terminal, Markdown in a notebook, a bar while a check runs
plain_math.py    formulas of Markdown in plain characters
other_cells.py   which names an answer takes from other cells of its notebook
progress.py      the file of what was solved, and what is open next
report.py        how far the reader is, as a table or as squares
"""
