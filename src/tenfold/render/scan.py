"""Scans: running sums and products along an axis, sequential in blocks of 1,024.

Takes a Frame, hands on lines. What comes before a block is carried into it: each result of the
block is combined with the sequential total of the blocks before. Lanes of a packet are what does
not depend on one another. In a "scan" a unit of work is some rows side by side, in a "scan blocks"
one row, of which some blocks are side by side: their elements are computed as they lie into scratch
memory, where square blocks of them are turned in registers, scanned, and turned back. In "scan
columns" packets lie along another axis, and the scanned one is a loop around them.

>>> running_rows(Kernel((), ()), ())
0
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tenfold.dtypes import kind_of
from tenfold.ir.body import Body
from tenfold.ir.kernel import BLOCK, Kernel
from tenfold.render import memory
from tenfold.render.frame import Frame
from tenfold.render.loops import (
    Parts,
    combined,
    counted,
    integer,
    read_packet,
    smaller,
    where,
    write_packet,
)
from tenfold.render.packet import SCALARS, Packet, type_text
from tenfold.render.tile import turned
