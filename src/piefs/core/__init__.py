"""The maths of the paper: arrays in, arrays out; no files, no devices, no loops over rows."""
