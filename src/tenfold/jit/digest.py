"""Digest: a hash of bytes that names kernels in the disk cache, and detects damaged files.

Takes bytes, hands on 32 bytes: BLAKE2b (RFC 7693), by the standard library. Its module is imported
by itself: `hashlib` takes 3 ms, more than all other work of loading a kernel.

>>> digest(b"abc").hex()[:8]
'bddd813c'
"""

from __future__ import annotations

try:
    from _blake2 import blake2b
except ImportError:  # an interpreter that takes its hashes from OpenSSL alone
    from hashlib import blake2b


def digest(data: bytes) -> bytes:
    """Return the hash, 32 bytes."""
    return blake2b(data, digest_size=32).digest()
