"""Version: the version number of this package."""

__version__ = "0.2.0"
