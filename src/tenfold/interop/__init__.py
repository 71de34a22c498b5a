"""How tenfold meets others: import, NumPy's protocols, DLPack, pickle, and what a reader is shown."""
