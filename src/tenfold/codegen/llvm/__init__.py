"""LLVM IR of loops: SIMD packets, loads and stores, reductions, scans, searches, transposes."""
