import json
import os
import sys

from genscope import bounds, claims, listing, studies
from genscope.cli.construct import MODES
from genscope.lab import Store
from tests.cli import study_file
from tests.cli.program import TOYS


def test_everything_is_listed_without_a_store(call, call_json, directory):
    facts = call_json("list")
    assert [study["name"] for study in facts["studies"]] == [study.name for study in studies.ALL]
    assert [claim["id"] for claim in facts["claims"]] == [claim.id for claim in claims.ALL]
    assert facts["claims"][0]["verdict"] is None
    quick = facts["studies"][0]["budgets"]["quick"]
    assert quick["points"] == len(studies.ALL[0].plan("quick").points)
    assert quick["stored"] == 0
    assert [bound["name"] for bound in facts["bounds"]] == list(bounds.ALL)
    assert {built["name"] for built in facts["constructions"]} == {"EXPR", *MODES}
    told = call("list").stdout
    assert all(study.name in told for study in studies.ALL)
    assert "not decided yet" in told
    assert not list(directory.iterdir())


def test_a_part_of_the_listing(call, call_json, refused):
    assert [*call_json("list")] == ["store", "studies", "claims", "constructions", "bounds"]
    assert [*call_json("list", "claims")] == ["store", "claims"]
    told = call("list", "bounds").stdout
    assert "Bounds: genscope bound NAME" in told
    assert "Claims" not in told
    assert "studies" in refused("list", "nothing")


def test_the_state_of_the_store_is_shown(call, call_json):
    call("run", f"{TOYS}:study")
    with Store("sqlite:///genscope.db") as store:
        store.put_verdict("A4", "quick", {"verdict": "fails"})
        store.put_verdict("A4", "standard", {"verdict": "holds"})
    facts = call_json("list")
    own = facts["studies"][-1]
    assert (own["name"], own["stored"]) == ("toy", {"ok": 8, "failed": 0})
    assert own["budgets"]["standard"]["points"] == 4
    (decided,) = (claim for claim in facts["claims"] if claim["id"] == "A4")
    assert (decided["verdict"], decided["budget"]) == ("holds", "standard")
    assert "holds (standard)" in call("list").stdout


def test_a_share_of_a_study_is_shown(call, monkeypatch):
    call("run", f"{TOYS}:search", "--budget", "quick")
    call("run", f"{TOYS}:search", "--where", "context_length=10")
    monkeypatch.setattr(studies, "ALL", (study_file.study, study_file.search))
    told = call("list").stdout
    assert "nothing stored yet; points: quick 1, standard 4" in told
    assert "quick 100 % of 1 point;" in told
    assert "% or more of" in told


def test_what_is_kept_of_studies_serves_until_a_source_file_changes(monkeypatch, tmp_path):
    made, source, kept = [], tmp_path / "package" / "study.py", tmp_path / "genscope" / "listing.json"
    source.parent.mkdir()
    source.write_text("points = 1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(listing, "PACKAGE", source.parent)
    monkeypatch.setattr(listing, "_made", lambda: made.append(None) or {"number": len(made)})
    assert listing.listing() == {"number": 1}  # as long as they are loaded, nothing is read
    assert not kept.exists()
    monkeypatch.delitem(sys.modules, "genscope.studies")
    assert [listing.listing()["number"] for _ in range(2)] == [2, 2]
    source.write_text("points = 2")
    os.utime(source, ns=(1, 1))
    assert [listing.listing()["number"] for _ in range(2)] == [3, 3]
    for damage in ("", "{}", json.dumps({"state": None})):
        kept.write_text(damage)
        number = len(made)
        assert [listing.listing()["number"] for _ in range(2)] == [number + 1] * 2
    kept.unlink()
    kept.mkdir()  # a place that cannot be written
    number = len(made)
    assert [listing.listing()["number"] for _ in range(2)] == [number + 1, number + 2]


def test_the_listing_is_plain_json():
    assert json.loads(json.dumps(listing._made()))["studies"][0]["name"] == studies.ALL[0].name
