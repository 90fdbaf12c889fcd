"""How pages are made from templates, here and in the explorer.

Guarantee: what a page shows is escaped, and a name that a template does not know is an error.
"""

import jinja2


def environment(package: str) -> jinja2.Environment:
    """The templates that lie in a package."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader(package),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
