"""What Sphinx is told; `build.py` puts the pages together and calls it."""

import importlib.metadata
import importlib.resources
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

project = "genscope"
author = "The genscope authors"
project_copyright = "2026, the genscope authors"
version = release = importlib.metadata.version("genscope")
language = "en"

extensions = ["myst_nb", "sphinx_copybutton", "mathml", "crosslinks"]
html_theme = "furo"
html_title = f"genscope {release}"
# Browsers draw MathML well with a font that knows mathematics; STIX Two Math (OFL) comes with ziamath.
FONT = importlib.resources.files("ziamath") / "fonts" / "STIXTwoMath-Regular.ttf"
html_static_path = ["static", str(FONT)]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sourcelink = False
html_favicon = "../../src/genscope/explorer/static/icon.svg"
html_theme_options = {"navigation_with_keys": True, "top_of_page_buttons": []}
templates_path: list[str] = []
exclude_patterns = ["_extra"]
maximum_signature_line_length = 88
python_display_short_literal_types = True
python_use_unqualified_type_names = True
toc_object_entries = False  # lists of modules are enough, and theme and reader are quicker without the rest
pygments_style, pygments_dark_style = "friendly", "github-dark"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

myst_enable_extensions = ["attrs_inline", "colon_fence", "dollarmath"]
myst_heading_anchors = 4
myst_dmath_double_inline = True
suppress_warnings = ["mystnb.unknown_mime_type"]

nb_execution_mode = os.environ.get("GENSCOPE_DOCS_EXECUTE", "cache")
nb_execution_cache_path = os.environ.get("GENSCOPE_DOCS_CACHE", "")
nb_execution_in_temp = True
nb_execution_show_tb = True  # a failure is a warning, hence an error, and says what failed
nb_execution_timeout = 1800  # seconds of a cell: a busy machine is not a failure
nb_merge_streams = True
