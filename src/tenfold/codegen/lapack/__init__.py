"""LLVM IR around LAPACK drivers: copies of matrices, diagonals, determinants."""
