"""LLVM IR of matrix products: packing, register tiles, blocks; and calls of BLAS."""
