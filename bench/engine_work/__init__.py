"""What bench/engine.py measures: additions, sums, launches, memory, trees, and gaps of pushes."""
