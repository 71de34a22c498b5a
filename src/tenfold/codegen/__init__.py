"""Code generation: lowers a Kernel to LLVM IR that depends on the Kernel and the target alone."""
