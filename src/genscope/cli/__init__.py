"""The program `genscope`: one file per command; a place in `_app.COMMANDS` is the registration."""

from genscope.cli._app import main as main
