"""GEMM code generation: LLVM IR of matrix products (packing, register tiles, blocks), and BLAS
calls.
"""
