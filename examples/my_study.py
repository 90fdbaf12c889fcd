"""A study of one's own: how many samples a nearest-neighbour rule needs for a majority of one or three votes.

Run it with `genscope run examples/my_study.py:study`, stop it at any moment, run it again, and look at it with
`genscope report`. The trial here is a nearest-neighbour rule, so that it takes milliseconds; put your own in its place.
"""

import jax.numpy as jnp

from genscope import Study, grid
from genscope.lab import Crossing, Line, Search
from genscope.random import stream
from genscope.tasks import SparseMajority


def trial(key, *, context_length: int, votes: int, sample_size: int):
    """Classify fresh bit strings by their nearest neighbor in the sample; success is 90 % right."""
    task = SparseMajority.draw(stream(key, "support"), context_length=context_length, support_size=votes)
    sample, test = task.sample(stream(key, "sample"), sample_size), task.sample(stream(key, "test"), 200)
    distance = (test.x[:, None] ^ sample.x[None]).sum(axis=-1)
    accuracy = float(jnp.mean(sample.y[distance.argmin(axis=1)] == test.y))
    return {"success": accuracy >= 0.9, "accuracy": accuracy}


study = Study(
    name="nearest-majority",
    title="Samples a nearest-neighbour rule needs for a majority",
    source="examples/my_study.py",
    trial=trial,
    points=grid(context_length=[5, 7, 9], votes=[1, 3]),
    search=Search(lowest=4, highest=512, start=32, width=0.25, trials=80),
    figures=[
        Line(
            title="Samples to reach 90 %",
            caption="Threshold at which 80 % of trials reach 90 % accuracy.",
            x="context_length",
            y=Crossing("sample_size", "success"),
            by="votes",
        )
    ],
)
