"""Interoperability: import, NumPy's protocols, DLPack, pickle and display."""
