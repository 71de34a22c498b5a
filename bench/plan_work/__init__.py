"""What bench/plans.py measures: known plans, new shapes, new structures, new processes, memory."""
