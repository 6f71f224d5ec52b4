"""The paper's experiments: which runs there are, running them, and what came out beside the paper.

`cells` names every run, `work` makes one, `grid` makes many, `records` reads what is on disk, and
`published` holds the paper's own numbers.
"""
