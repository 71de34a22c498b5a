"""Function transforms: tracing, batching (vmap), control flow, custom operations and callbacks."""
