"""Every reader of what comes from elsewhere, on inputs that once broke it, and on new ones: an answer or a refusal.

`make test` tries a few inputs of each, always the same; `make test-all` a hundred thousand, new ones each time.
"""

import os
from pathlib import Path

import pytest

from tests.checkpoints.files import LAYOUTS
from tests.fuzz.guided import check, fuzz
from tests.fuzz.targets import opened

CORPUS = sorted((Path(__file__).parent / "corpus").glob("*/*"))
NAMES = [
    *("checkpoint", "checkpoint-header", "checkpoint-index", *(f"config-{number}" for number in range(len(LAYOUTS)))),
    *("model", "model-header", "arrays-npz", "arrays-safetensors"),
    *("expression", "components", "store-url", "filter"),
    *("request", "ask-function", "ask-bounds", "ask-learn", "ask-studies"),
]
SHARE_OF_TEST = 0.002  # of the hundred thousand, in make test


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    with opened(tmp_path_factory.mktemp("fuzz")) as targets:
        yield {target.name: target for target in targets}


def seed():
    """A new one for make test-all; pytest shows it where a test fails."""
    fresh = os.environ.get("GENSCOPE_FRESH_SEEDS") is not None
    number = int.from_bytes(os.urandom(4), "little") if fresh else 0
    print(f"seed {number}")
    return number


def test_every_reader_has_its_share(known):
    assert list(known) == NAMES
    assert sum(target.share for target in known.values()) == 100_000


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_once_broke_is_answered_or_refused(known, path):
    check(known[path.parent.name], path.read_bytes())


@pytest.mark.parametrize("name", NAMES)
def test_a_few_inputs(known, name):
    target = known[name]
    tally = fuzz(target, inputs=max(12, round(target.share * SHARE_OF_TEST)), seed=0)
    assert tally.refused < tally.tried  # its own examples are taken
    assert tally.lines > 20


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", NAMES)
def test_a_hundred_thousand_inputs(known, name):
    print(name, fuzz(known[name], inputs=known[name].share, seed=seed()))
