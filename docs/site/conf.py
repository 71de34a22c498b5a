"""Settings of Sphinx for the site; `docs/site/build.py` gives it the pages. No page fetches a font
or a script from elsewhere.
"""

from __future__ import annotations

from tenfold.version import __version__

project = "Tenfold"
author = "The Tenfold authors"
copyright = author  # noqa: A001  # Sphinx's name
release = version = __version__

extensions = ["myst_parser"]
root_doc = "index"
source_suffix = {".md": "markdown"}
myst_heading_anchors = 4
myst_ref_domains = ["py"]
add_module_names = False
smartquotes = False
maximum_signature_line_length = 88
toc_object_entries = False
python_display_short_literal_types = True
pygments_style = "default"

html_theme = "pydata_sphinx_theme"
html_title = "Tenfold"
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "secondary_sidebar_items": ["page-toc"],
    "navbar_end": ["theme-switcher"],
    "footer_start": [],
    "footer_end": [],
    "show_prev_next": True,
    "header_links_before_dropdown": 7,
}
