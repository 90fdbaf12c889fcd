"""What `genscope probe` asks: an expression, a model file, or the user's own model or function, on bits or on prompts.

Guarantee: exact; a model is asked in the precision of its file, and what cannot be asked is refused before the first
query.
"""

import inspect
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

from genscope.cli._user_code import imported, is_reference, users_code
from genscope.refusal import Refusal

_EVERY_SECONDS = 10.0
_BATCHES = (64, 1024, 16384)  # inputs of a model at once: one program is compiled for each
_PROMPTS = (32, 256)  # the same of prompts, which are longer
_FILES = (".safetensors", ".pt", ".pth", ".bin", ".pkl", ".npz", ".ckpt")


class TargetPrompts:
    """What becomes of bits before a model or a function sees them, and of what it answers."""

    def __init__(self, template: str | None, answer: tuple[int, int] | None, bits: int):
        self.bits, self.given, self._answer, self._make = bits, template, answer, None
        if template is None:
            return
        from genscope.probe.prompts import Template

        self._make = imported(template) if is_reference(template) else Template.read(Path(template))

    @property
    def plain(self) -> bool:
        """Whether bits and answers stay as they are."""
        return self._make is None and self._answer is None

    @property
    def law(self) -> str:
        """Under which the components are those of the function."""
        if self.given is None:
            return f"uniform over the 2^{self.bits} inputs"
        return f"uniform over the 2^{self.bits} prompts of {self.given}, whichever of them people would write"

    def made(self, x: Any) -> Any:
        """TargetPrompts of a batch of bits: an array, several by name, or texts."""
        if self._make is None:
            return x
        import numpy as np

        found: Any = self._make(x)
        if isinstance(found, dict):
            found = {name: np.asarray(part) for name, part in found.items()}
        elif isinstance(found, list) and not any(isinstance(each, str) for each in found):  # lists of token ids
            found = np.asarray(found)
        sizes = {len(part) for part in (found.values() if isinstance(found, dict) else [found])}
        if sizes != {len(x)}:
            raise Refusal(
                f"{self.given} returned {', '.join(map(str, sorted(sizes)))} prompts for {len(x)} rows of bits: for "
                "a batch [n, T] it must return n prompts, as an array, several named arrays, or a list of texts. "
                "Correct the function."
            )
        return found

    def answered(self, outputs: Any) -> Any:
        """One number for each prompt, if two logits are chosen or the model gives a list of one; else what it gives."""
        if self._answer is None:
            return outputs[:, 0] if outputs.shape[1:] == (1,) else outputs
        from genscope.probe.prompts import logit_difference

        return logit_difference(outputs, *self._answer)


def chosen_logits(text: str | None) -> tuple[int, int] | None:
    """The two logits of `--answer`, the first less the second."""
    if text is None:
        return None
    try:
        first, second = map(int, text.split(","))
    except ValueError:
        raise Refusal(
            f"probe got --answer {text}: it must be the indices of two logits, the first minus the second. Write, "
            "for example, --answer 1,0."
        ) from None
    return first, second


def of_name(target: str, prompts: TargetPrompts) -> Callable[..., Any]:
    """The function of an expression or of a model file."""
    if Path(target).is_file() or target.endswith(_FILES):
        from genscope.cli._jax import prepare_jax

        prepare_jax()
        from genscope.models.file import load

        return with_progress(_outputs(load(target), prompts, target))
    from genscope.fourier import parse

    return parse(target, max(prompts.bits, 1))


def of_user(target: str, prompts: TargetPrompts) -> Callable[..., Any]:
    """The user's function of bits; or the outputs of the user's model, if a model, its class or its maker is named."""
    found = imported(target)
    if not isinstance(found, type) and _asks_for_inputs(found):
        if prompts.plain:
            return found
        with users_code(target):
            return _of_prompts(found, prompts)
    from genscope.cli._jax import prepare_jax
    from genscope.cli._model_data import made

    prepare_jax()
    return _outputs(made(found, target), prompts, target)


def _of_prompts(function: Callable[..., Any], prompts: TargetPrompts) -> Callable[..., Any]:
    """The user's function of a batch of prompts as one of a batch of bits."""
    import numpy as np

    def ask(x: np.ndarray) -> np.ndarray:
        found = prompts.made(x)
        outputs = function(**found) if isinstance(found, dict) else function(found)
        return np.asarray(prompts.answered(np.asarray(outputs)))

    ask(np.zeros((2, prompts.bits), np.int64))  # a mistake shows here, before inputs are tried one by one
    return ask


def _asks_for_inputs(found: Any) -> bool:
    """Whether it is a plain function with an argument that must be given."""
    try:
        parameters = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):
        return True
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = any(each.kind in positional and each.default is inspect.Parameter.empty for each in parameters)
    several = any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in parameters)
    return (needed or several) and not _has_weights(found)


def _has_weights(found: Any) -> bool:
    if inspect.isroutine(found):
        return False
    from genscope.cli._model_data import is_model

    return is_model(found)


def _outputs(model: Any, prompts: TargetPrompts, path: str) -> Callable[..., Any]:
    """A model as a function of batches, compiled for a few sizes."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp
    import numpy as np

    from genscope.cli._model_data import check_embeddings
    from genscope.models import TorchModel, outputs
    from genscope.models.bit_transformer import BitTransformer
    from genscope.precision import float64

    name = model.program.name if isinstance(model, TorchModel) else type(model).__name__
    whole = isinstance(model, BitTransformer | TorchModel) or prompts.given is not None

    def given(x: np.ndarray) -> Any:
        if prompts.given is None:  # PyTorch reads bits as numbers, as in `learn`
            return x.astype(model.program.number) if isinstance(model, TorchModel) else x == 1
        made = prompts.made(x)
        if isinstance(made, list):
            raise Refusal(
                f"{prompts.given} makes texts, but the model in {path} takes token ids. Use lists of ids, or name a "
                "function that takes texts and queries the model."
            )
        return made

    def values(model: Any, x: Any) -> jax.Array:
        return outputs(model, x) if whole else jax.vmap(model)(x)

    with users_code(prompts.given or path):
        first = given(np.tile(np.arange(2)[:, None], (1, prompts.bits)))  # both prompts, if that is what bits choose
    with float64():  # arrays keep the precision of the file
        if isinstance(model, TorchModel):
            model.check(first)
        try:
            found = eqx.filter_eval_shape(values, model, jax.tree.map(jnp.asarray, first))
        except Exception as error:
            raise Refusal(
                f"{path} holds {name}, which does not take {prompts.bits} bits: probe queries models whose input "
                "is T bits. Correct --bits, or name a function or a --template that turns bits into its inputs."
            ) from error
        shape = jax.eval_shape(prompts.answered, found).shape
        if shape != (2,):
            raise Refusal(
                f"{path} holds {name} with outputs of shape {shape[1:]}: probe needs one number. Choose the "
                "difference of two logits, as in --answer 1,0, or name a function that picks one output."
            )
        if prompts.given is not None and not isinstance(model, TorchModel):
            check_embeddings(model, first, "prompt")

    run = eqx.filter_jit(lambda model, x: prompts.answered(values(model, x)))
    sizes = _BATCHES if prompts.given is None else _PROMPTS

    def ask(x: np.ndarray) -> np.ndarray:
        found = []
        for start in range(0, len(x), sizes[-1]):
            part = x[start : start + sizes[-1]]
            size = next(size for size in sizes if size >= len(part))
            padded = np.concatenate([part, np.zeros((size - len(part), prompts.bits), x.dtype)])
            with float64():
                found.append(np.asarray(run(model, jax.tree.map(jnp.asarray, given(padded))))[: len(part)])
        return np.concatenate(found)

    return ask


def with_progress(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with a line now and then on standard error for those who wait long."""
    import numpy as np

    start = last = time.monotonic()
    asked = 0

    def ask(x: np.ndarray) -> Any:
        nonlocal asked, last
        answer = function(x)
        asked += len(x) if x.ndim == 2 else 1
        now = time.monotonic()
        if now >= last + _EVERY_SECONDS:
            typer.echo(f"{asked:,} queries, {asked / (now - start):,.0f} per second", err=True)
            last = now
        return answer

    return ask
