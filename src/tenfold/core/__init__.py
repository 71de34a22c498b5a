"""Core: operations, graphs, patterns, scalar IR, loop IR, shape rules and symbolic shapes."""
