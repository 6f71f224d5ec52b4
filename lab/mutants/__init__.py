"""Small changes to the maths, one at a time: does a test notice?

`python -m lab.mutants` (or `make mutants`) keeps its trials in `lab/mutants/results.jsonl`. Changes
are those of mutmut's operators. Its runner is not used: it chooses a change while a process runs,
long after JAX has compiled the function without it. Here every change has a process of its own,
forked with all libraries imported and without `piefs`.
"""
