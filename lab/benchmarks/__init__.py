"""Speed as ratios: every number is measured beside its peers, in one run, on idle cores.

`make bench` runs everything, `make bench ONLY="steps inference"` some of it. Results go to
`lab/benchmarks/results.jsonl`, together with a description of the machine.
"""
