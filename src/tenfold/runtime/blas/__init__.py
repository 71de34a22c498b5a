"""Matrix products on the cpu device: dispatch between compiled kernels and BLAS."""
