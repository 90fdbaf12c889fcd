"""Why a model has no bounds: what it computes before the softmax, or how its tokens are normalized, is not known here.

Models share names and differ in arithmetic. Bounds are given where three things agree: the config names a kind of model
whose arithmetic is known, it asks for nothing else, and the layers hold no weights besides those of that kind.

Guarantee: every reason that is found is given. A model without one may still differ where neither its config nor the
names of its weights show it.
"""

import re
from collections.abc import Iterator

from genscope.checkpoints._layout import Kind, Layout, Stack

_NORMED = r".*\b[qk]_(norm|ln|layernorm)\..*"
_SHOWN = 3


def find_kind(layout: Layout, stack: Stack) -> Kind | None:
    """The kind of model that the config names, if it is known."""
    named = stack.config.get("model_type")
    return layout.kinds.get(named) if named is None or isinstance(named, str) else None


def find_doubts(layout: Layout, stack: Stack) -> tuple[str, ...]:
    """Every reason to withhold bounds; none if they can be given."""
    kind = find_kind(layout, stack)
    found = [*_of_config(layout, stack, kind), *_of_names(layout, stack, kind)]
    return tuple(dict.fromkeys(found))


def _of_config(layout: Layout, stack: Stack, kind: Kind | None) -> Iterator[str]:
    named = stack.config.get("model_type")
    known = ", ".join(name for name in layout.kinds if name)
    if kind is None and named is None:
        yield (
            f"no config.json says which model this is (model_type), and models with the names of {layout.architecture} "
            f"differ in their norms and scores: known are {known}. Give its config.json by --config"
        )
    elif kind is None:
        yield (
            f"its config calls it {named!r:.40}: it has the names of {layout.architecture}, and perhaps other norms, "
            f"scores or positions. Known are {known or 'models whose config names none'}"
        )
    if stack.config.get("auto_map"):
        yield "its config names code of its own (auto_map), and what that computes is not known here"
    yield from layout.doubts(stack.config)


def _of_names(layout: Layout, stack: Stack, kind: Kind | None) -> Iterator[str]:
    before, _, _ = layout.signs[0].partition("{}")
    beginning = re.compile(re.escape(stack.prefix + before) + r"[0-9]+\.")
    rest = {name[found.end() :] for name in stack.weights if (found := beginning.match(name))}
    normed = {name for name in rest if re.fullmatch(_NORMED, name)}
    if normed:
        yield "it normalizes queries and keys before they meet: its scores are no bilinear map of the tokens"
    known = re.compile("|".join(pattern for pattern in (layout.names, kind and kind.names) if pattern))
    strange = sorted(name for name in rest - normed if not known.fullmatch(name))
    if strange and kind is not None:
        more = f" and {len(strange) - _SHOWN} more" if len(strange) > _SHOWN else ""
        shown = ", ".join(f"{name!r:.60}" for name in strange[:_SHOWN])
        yield f"its layers hold weights whose part in the arithmetic is not known here: {shown}{more}"
