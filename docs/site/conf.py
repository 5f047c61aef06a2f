# SPDX-License-Identifier: MIT
"""What Sphinx is told; build.py starts it in the folder that stage.py has filled."""

from schedlab import __version__

project = "schedlab"
author = "The schedlab authors"
copyright = author
release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}
root_doc = "index"
nitpicky = False

# Links of a page to a heading of another are as the repository page has them.
myst_heading_anchors = 4
autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_google_docstring = False
napoleon_use_rtype = False
# What single backquotes of a docstring mean.
default_role = "code"

html_theme = "furo"
html_title = f"schedlab {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["_extra"]
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"source_repository": ""}
# Colours that both schemes of the theme have with enough contrast.
pygments_style = "default"
pygments_dark_style = "github-dark"
highlight_language = "text"
