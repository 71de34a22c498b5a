"""JIT compilation: programs, object images, the disk cache of kernels, the compile thread."""
