"""Algorithm 1 and its schedules."""
