"""JIT compilation: programs, object images, the disk cache of kernels and the compile thread."""
