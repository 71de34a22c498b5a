"""LLVM code generation: IR of loops, SIMD packets, memory access, reductions and scans."""
