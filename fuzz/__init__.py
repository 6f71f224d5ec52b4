"""Strangers' files, by the thousand: mutations of real files, given to every reader of piefs.

`python -m fuzz` (or `make fuzz`) writes `fuzz/results/fuzz.json`; `python -m fuzz.soak` (or
`make soak`) kills runs and resumes them; `python -m fuzz.atheris TARGET` searches by coverage.
"""
