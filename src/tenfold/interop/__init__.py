"""How tenfold meets others: import, NumPy's protocols, DLPack, pickle, and what is shown."""
