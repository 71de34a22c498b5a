"""Storage: dense values in their buffers, and the kinds of arrays that are stored as components.

Native code knows dense by its number, 0: it is declared before any kind.
"""

from tenfold.storage import dense

__all__ = ["dense"]
