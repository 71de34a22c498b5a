"""Looking inside: `explain`, the profiler, and what they print."""
