"""SIMT code generation: kernels for devices that run one thread for each lane, in blocks."""
