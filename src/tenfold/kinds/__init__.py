"""The storage kinds, one file each: constructors and rules (the table: `storage/kinds.py`)."""
