"""A user's network in a question: what their builder returns, as arrays and a program that is compiled once.

Departures: a network answers with one number or a list of one. A module of PyTorch reads bits as the numbers 0 and 1;
its initial weights come from PyTorch's own generator, which is given a seed that follows from the key.
Guarantee: exact; what cannot be a network is refused before anything is trained.
"""

import functools
import sys
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Key

from genscope.models import from_torch, outputs
from genscope.models.torch_module import TorchModel
from genscope.questions.networks import shown
from genscope.questions.user_files import UserFile
from genscope.random import derived
from genscope.refusal import Refusal


class _Rest:
    """What a user's module has beside its arrays: equal to itself alone, and hashed as such."""

    def __init__(self, tree: Any):
        self.tree = tree


class Own(eqx.Module):
    """A user's network as arrays and the rest, which programs are compiled for."""

    arrays: Any
    rest: _Rest = eqx.field(static=True)

    def outputs(self, x: Array) -> Array:
        """Outputs of a batch."""
        return _outputs(eqx.combine(self.arrays, self.rest.tree), x)


def built(file: UserFile, key: Key[Array, ""], context_length: int) -> Own:
    """The user's network; parts that are no arrays are those of its first, so that programs are shared."""
    model, first = _called(file, key, context_length), _first(file, context_length)
    if isinstance(model, TorchModel) and isinstance(first.tree, TorchModel):
        model = TorchModel(first.tree.program, model.weights, model.fixed)
    arrays, rest = eqx.partition(model, eqx.is_array)
    # A class that the builder defines anew with every call is another class each time: its programs are not shared.
    same = jax.tree.structure(rest) == jax.tree.structure(first.tree)
    return Own(arrays, first if same else _Rest(rest))


def check(file: UserFile, context_length: int) -> None:
    """Refuse a network whose output for one example is no single number."""
    model = _called(file, jr.key(0), context_length)
    if isinstance(model, type) or not callable(model):
        what = f"the class {model.__name__}" if isinstance(model, type) else f"a {type(model).__name__}"
        raise Refusal(
            f"learn got the network {shown(file.label)}, whose builder returns {what}: it must return an Equinox "
            "module that takes one example. Return one."
        )
    weights = [leaf for leaf in jax.tree.leaves(model) if eqx.is_inexact_array(leaf)]
    if not weights:
        raise Refusal(
            f"learn got the network {shown(file.label)}, whose builder returns a {type(model).__name__} without "
            "floating-point arrays: there is nothing to train. Return an Equinox module with weights, or a PyTorch "
            "module some of whose parameters require a gradient."
        )
    if odd := sum(int(jnp.sum(~jnp.isfinite(leaf))) for leaf in weights):
        raise Refusal(
            f"learn got the network {shown(file.label)}, whose builder returns {odd:,} weights that are not finite "
            f"(of {sum(leaf.size for leaf in weights):,}): training must begin at numbers. Correct its initialization."
        )
    shape = eqx.filter_eval_shape(_outputs, model, jnp.zeros((2, context_length), bool)).shape
    if shape != (2,):
        raise Refusal(
            f"learn got the network {shown(file.label)}, whose output for one example of {context_length} bits has the "
            f"shape {shape[1:]}: it must be one number, the logit of label 1, of shape () or (1,). Return one."
        )


def _outputs(model: Any, x: Array) -> Array:
    torch = isinstance(model, TorchModel)
    answers = model.outputs(x.astype(model.program.number)) if torch else outputs(model, x)
    return answers[:, 0] if answers.shape[1:] == (1,) else answers


@functools.cache
def _first(file: UserFile, context_length: int) -> _Rest:
    return _Rest(eqx.partition(_called(file, jr.key(0), context_length), eqx.is_array)[1])


def _called(file: UserFile, key: Key[Array, ""], context_length: int) -> Any:
    file.found()  # imports PyTorch, if it does at all
    if (torch := sys.modules.get("torch")) is not None:
        torch.manual_seed(int(jr.bits(derived(key, 0))))
    model = file.call(key, context_length)
    torch = sys.modules.get("torch")
    return from_torch(model) if torch is not None and isinstance(model, torch.nn.Module) else model
