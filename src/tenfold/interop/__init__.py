"""Interoperability: import, conversion of values, DLPack, pickle and display."""
