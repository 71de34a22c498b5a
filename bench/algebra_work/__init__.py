"""What bench/algebra.py measures, and with what: experiments, BLAS by hand, layers, planning."""
