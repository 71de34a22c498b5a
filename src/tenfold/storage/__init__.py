"""The storage kinds: how a value's elements lie in its buffers. Dense is the one there is."""
