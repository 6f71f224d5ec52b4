"""The maths of the paper: arrays in, arrays out."""
