"""Strangers' files, by the thousand: mutations of real files, given to every reader of piefs.

`python -m lab.fuzz` (or `make fuzz`) writes `lab/fuzz/results/fuzz.json`; `python -m lab.fuzz.soak` (or
`make soak`) kills runs and resumes them; `python -m lab.fuzz.atheris TARGET` searches by coverage.
"""
