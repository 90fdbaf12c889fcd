"""Claims as a library: requests that make no sense are refused before anything runs."""

import pytest

from genscope import claims
from genscope.lab import Store
from genscope.refusal import Refusal


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"budget": "huge"}, "budgets are quick, standard, paper"),
        ({"only": ["A1", "Z1"]}, "claims are A1, A2"),
    ],
    ids=str,
)
def test_what_cannot_be_decided_is_refused(request_, words, tmp_path):
    with Store(f"sqlite:///{tmp_path / 's.db'}") as store:
        with pytest.raises(Refusal, match=words):
            claims.decide(store, **request_)
        assert not store.manifests()
        assert not store.verdicts()
