"""Deprecated names: maps each renamed public name to its new one, and warns on use.

Takes an old name, returns the new one. An old name works for one version.

>>> RENAMED_NAMES["update"]
'set_at'
"""

from __future__ import annotations

import warnings

RENAMED_NAMES = {
    "COMPLEX": "CONTRACTION",
    "Object": "EngineObject",
    "declare": "assume",
    "syncs": "host_syncs",
    "update": "set_at",
}
"""Public names of version 0.1, with the names that replace them."""


def warn_renamed(owner: str, old: str) -> str:
    """Return the new name; the DeprecationWarning names the line that uses the old one."""
    new = RENAMED_NAMES[old]
    warnings.warn(f"{owner}.{old} is now {owner}.{new}", DeprecationWarning, stacklevel=3)
    return new
