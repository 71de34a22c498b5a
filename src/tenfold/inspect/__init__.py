"""Inspection: `explain`, the profiler, and the text that they print."""
