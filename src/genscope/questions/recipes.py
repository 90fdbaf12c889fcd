"""How each named network is trained: optimizer, rate, steps and the rows of a step, chosen on exploratory seeds.

Departures: one recipe per network for all functions and context lengths; a user may override rate, steps and optimizer.
Guarantee: exact; a recipe says all that training depends on besides the network, the sample and the keys.
"""

from dataclasses import dataclass, replace
from typing import Literal

from genscope.refusal import Refusal
from genscope.train import Optimizer, adam, adamw, sgd

OptimizerName = Literal["adam", "adamw", "sgd"]
OPTIMIZERS = ("adam", "adamw", "sgd")
LONGEST = 1_000_000  # steps
DECAY = 0.01  # of AdamW


@dataclass(frozen=True)
class Recipe:
    """Training of one network: steps on the whole sample up to `rows` examples, on random ones of it beyond."""

    rate: float = 1e-3
    steps: int = 1000
    optimizer: OptimizerName = "adam"
    epsilon: float = 1e-8  # of Adam
    rows: int = 512
    every: int = 10  # steps between two looks at the held-out examples
    floor: float = 0.01  # nats of training loss, at which a run is given up

    def override(self, rate: float | None, steps: int | None, optimizer: str | None) -> "Recipe":
        """The recipe with what the user asks for in the place of its own."""
        if rate is not None and not 0 < rate < 100:
            raise Refusal(f"learn got a rate of {rate}: it must be positive. Choose, for example, 0.001.")
        if steps is not None and not 1 <= steps <= LONGEST:
            raise Refusal(f"learn got {steps} steps: there must be 1 to {LONGEST:,}. Change the number.")
        if optimizer is not None and optimizer not in OPTIMIZERS:
            raise Refusal(
                f"learn got the optimizer {optimizer!r}: optimizers are {', '.join(OPTIMIZERS)}. Choose one of them."
            )
        given = {"rate": rate, "steps": steps, "optimizer": optimizer}
        return replace(self, **{name: value for name, value in given.items() if value is not None})

    def made(self) -> Optimizer:
        """The optimizer."""
        if self.optimizer == "sgd":
            return sgd(self.rate)
        if self.optimizer == "adamw":
            return adamw(self.rate, weight_decay=DECAY)
        return adam(self.rate, epsilon=self.epsilon)

    @property
    def words(self) -> str:
        """The recipe in a line.

        >>> Recipe(rate=0.003, steps=800).words
        'adam at rate 0.003, up to 800 steps, each on the whole sample or on 512 random examples of a larger one'
        """
        name = f"{self.optimizer} at rate {self.rate:g}"
        rows = f"each on the whole sample or on {self.rows} random examples of a larger one"
        return f"{name}, up to {self.steps:,} steps, {rows}"
