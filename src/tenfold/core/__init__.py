"""The nouns of the library: operations, graphs, patterns, scalar IR and loop IR, shapes and
symbols.
"""
