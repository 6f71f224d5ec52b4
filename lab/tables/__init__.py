"""Public tables: piefs beside the methods that people use for tables, on the same rows.

`make bench ONLY=tables` runs what is missing, and writes docs/tables.md. The tables are the CSV
files in `$PIEFS_DATA/tables`; records are `lab/tables/results.jsonl`, a line for each fit.
"""
