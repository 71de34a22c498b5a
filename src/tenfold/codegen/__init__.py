"""Code generation: from a Kernel to LLVM IR. The text depends on the Kernel and the target
alone.
"""
