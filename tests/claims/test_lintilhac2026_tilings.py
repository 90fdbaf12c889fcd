"""Claim C9 on made-up readings: its rule can hold, fail and stay undecided."""

import polars as pl
import pytest

from genscope.claims.lintilhac2026_tilings import C9
from genscope.lab.results.reading import Reading

AT = {"status": "ok", "context_length": 64, "degree": 2, "sample_size": 10**8}


def verdict(paper=0.2, tuned=0.107, covering=119.0, **changes):
    values = {("tuned", 0.1): tuned, ("covering", 0.1): covering, ("paper", 0.1): paper, ("tuned", 0.5): 0.314}
    rows = [AT | {"bound": bound, "constant": c, "value": value} | changes for (bound, c), value in values.items()]
    return C9.verdict([Reading(pl.DataFrame(rows), (), 0)], budget="quick", seconds=0.0)


def test_c9_needs_all_three_parts():
    assert verdict().verdict == "holds"
    assert [part.decision for part in verdict(paper=0.308).parts] == ["fails", "holds", "holds"]  # what we compute
    assert [part.decision for part in verdict(paper=0.3, covering=0.28).parts] == ["fails", "fails", "holds"]
    assert [part.decision for part in verdict(tuned=0.2500001).parts] == ["holds", "holds", "fails"]


@pytest.mark.parametrize(
    "changes", [{"context_length": 20}, {"sample_size": 10**9}, {"degree": 4}, {"status": "failed"}, {"constant": 0.2}]
)
def test_c9_is_decided_at_the_sizes_it_names_alone(changes):
    assert verdict(**changes).verdict == "undecided"


def test_c9_shows_the_clipped_loss_beside():
    numbers = verdict().numbers
    assert numbers["paper's weights"] == 0.2
    assert numbers["tuned, C = ½ (losses clipped at 1), beside"] == 0.314


def test_nothing_stored_is_undecided():
    empty = pl.DataFrame({"status": []}, schema={"status": pl.String})
    assert C9.verdict([Reading(empty, (), 0)], budget="quick", seconds=0.0).verdict == "undecided"
