"""What bench/engine.py measures: additions, holds, sums, launches, memory, trees, pushes."""
