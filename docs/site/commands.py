"""The page of commands, from the program itself."""

import re

from genscope.cli._app import COMMANDS, load


def page() -> str:
    """Every command with its arguments and options."""
    parts = [
        "# Commands",
        "What `genscope --help` and `genscope COMMAND --help` say. Bad input gets a message and status 2, never a "
        "traceback.",
    ]
    for path, command in _commands({name: load(name) for name in COMMANDS}):
        parts += [f"## {' '.join(path)}", _words(command.help or ""), *_tables(command)]
    parts += [
        "## Completion in the shell",
        "`genscope --install-completion` adds completion of commands and options to your shell (bash, zsh, fish, "
        "PowerShell), and `genscope --show-completion` prints what it would add. Start a new shell afterwards.",
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _commands(group, path=()):
    for name, command in group.items():
        if hasattr(command, "commands"):
            yield from _commands(command.commands, (*path, name))
        else:
            yield (*path, name), command


def _words(text: str) -> str:
    text = re.sub(r"\[/?(?:bold|dim|italic|cyan|green|red|yellow)\]", "", text.replace("\b", "")).replace("\f", "")
    return re.sub(r"<(?=[A-Za-z/])", r"\\<", text.strip())


def _tables(command):
    rows = []
    for parameter in command.params:
        if getattr(parameter, "hidden", False) or parameter.name == "help":
            continue
        names = ", ".join(f"`{each}`" for each in [*parameter.opts, *parameter.secondary_opts])
        if parameter.param_type_name == "argument":
            names = f"`{parameter.metavar or parameter.name.upper()}`"
        default = parameter.default
        shown = "" if default in (None, False, (), []) or callable(default) else f"`{default}`"
        about = _words(getattr(parameter, "help", None) or "").replace("\n", " ").replace("|", "\\|")
        rows.append(f"| {names} | {about} | {shown} |")
    if rows:
        yield "\n".join(["| Option | Meaning | Default |", "|---|---|---|", *rows])
