"""Remarks beside verdicts: each leads to an erratum that exists, of the claim's own paper."""

import pytest

from genscope import claims
from genscope.claims._remarks import REMARKS
from genscope.papers import PAPERS

CLAIMS = {claim.id: claim for claim in claims.ALL}


@pytest.mark.parametrize(("name", "remark"), REMARKS.items())
def test_a_remark_leads_to_an_erratum_of_its_paper(name, remark):
    assert CLAIMS[name].source.startswith(remark.paper)
    assert 1 <= remark.row <= len(PAPERS[remark.paper].errata)
    assert remark.text.endswith(".")
    assert len(remark.text) <= 120  # a sentence, beside a verdict
