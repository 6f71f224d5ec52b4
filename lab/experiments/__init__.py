"""Experiments past the paper: what the preset `default` reaches, against what, and why.

`python -m lab.experiments [STUDY …]` runs what is missing, one record a run, under
`results/beyond`; `python -m lab.experiments.report` turns the records into the page there. Settings
were chosen on validation rows (see LOG.md); only these runs look at the test rows.
"""
