"""The program `genscope`: one file per command; an import line and a place in `_app.COMMANDS` are the registration."""

from genscope.cli._app import main as main
