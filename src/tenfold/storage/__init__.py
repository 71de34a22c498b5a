"""Storage kinds: how a value's elements are stored in its buffers; dense is the only one.

Native code knows dense by its number, 0: it is declared before any other kind.
"""

from tenfold.storage import dense

__all__ = ["dense"]
