"""Storage: how a value's elements are stored in its buffers (dense), and the kinds of arrays that
are stored as dense components.

Native code knows dense by its number, 0: it is declared before any kind.
"""

from tenfold.storage import dense

__all__ = ["dense"]
