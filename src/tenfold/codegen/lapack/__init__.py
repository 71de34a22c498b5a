"""LAPACK code generation: LLVM IR around LAPACK drivers, for copies, diagonals and determinants."""
