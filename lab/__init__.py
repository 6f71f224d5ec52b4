"""Programs that measure us: experiments, benchmarks, fuzzing, mutants."""
