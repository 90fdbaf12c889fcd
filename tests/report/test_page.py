"""The page: complete, closed to the outside, safe against what it shows, readable without eyes."""

import html.parser
import itertools
import os
import re

import pytest

from genscope.lab.storage.store import Store
from genscope.report import page
from tests.report import stores


class Outline(html.parser.HTMLParser):
    """Elements with their attributes, and the text outside of `style`."""

    def __init__(self, text: str):
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in {"meta", "br", "path", "circle", "use", "rect"} or self.get_starttag_text().endswith("/>"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data):
        if not self.open or self.open[-1] != "style":
            self.text += data

    def all(self, *tags: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.elements if tag in tags]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    with stores.full(tmp_path_factory.mktemp("store") / "full.db") as made:
        yield made


@pytest.fixture(scope="module")
def text(store) -> str:
    return page.render(store)


@pytest.fixture(scope="module")
def outline(text) -> Outline:
    return Outline(text)


def test_every_claim_with_all_it_rests_on_in_natural_order(outline):
    for name in ("A1", "A2", "A10"):
        for part in ("Statement of", "rule of", "departure of", "first part of", "second part of"):
            assert f"{part} {name}" in outline.text
    assert [each["id"] for each in outline.all("article")] == ["claim-A1", "claim-A2", "claim-A10"]
    assert re.search(r"holds\s*1 of 3\s*fails\s*1 of 3\s*undecided\s*1 of 3", outline.text)
    assert "3.14" in outline.text
    assert "quick budget" in outline.text


def test_the_summary_comes_first_and_leads_to_claims_and_errata(text, outline):
    assert text.index('class="summary"') < text.index('class="claim"')
    targets = [attributes.get("href") for attributes in outline.all("a")]
    assert {"#claim-A1", "#claim-A2", "#claim-A10", "#erratum-edelman2022-6"} <= {*targets}
    assert "remark on A2" in outline.text
    assert ">edelman2022-and</a>" in text
    assert "not-stored" not in text
    assert "genscope reproduce --only A2 --budget quick" in outline.text


def test_the_summary_says_at_which_budget_and_what_keeps_a_claim_from_holding(text, tmp_path):
    assert "Decided at the quick budget." in text
    assert "Fails: first part of A1." in text
    assert "Undecided: first part of A10." in text
    assert "Holds: " not in text
    with Store(f"sqlite:///{tmp_path / 'two.db'}") as store:
        for name, budget in (("A1", "quick"), ("A2", "standard")):
            store.put_verdict(name, budget, stores.claim(name, "holds", budget=budget))
        mixed = page.render(store)
    assert "Decided at the" not in mixed
    assert (mixed.count(">quick</p>"), mixed.count(">standard</p>")) == (1, 1)


def test_every_figure_is_drawn_with_its_command(text, outline):
    drawings = [attributes for attributes in outline.all("svg") if attributes.get("role") == "img"]
    named = [attributes for attributes in drawings if attributes["aria-label"]]
    assert len(named) == 2 * len(outline.all("figure")) == 10  # one for wide pages, one for narrow ones
    assert [text.count(f'class="{word}"') for word in ("roomy", "tight")] == [5, 5]
    assert outline.text.count("(sample size = 50).") == 1  # an axis with one value is a sentence
    assert "genscope run edelman2022-curves --budget standard --store sqlite:///again.db" in text
    assert "The same trials in a store of their own (budget standard):" in text
    assert "edelman2022-and</code>, revision 1 · all stored trials</p>" in text  # nobody knows what was asked for
    assert "genscope run edelman2022-and --budget standard --store" not in text


def test_thresholds_of_every_kind_and_the_laws_between_them(outline):
    words = " ".join(outline.text.split())
    said = "above all sizes that were tried|success levels off below 80 %|too few trials"
    assert re.search(rf"400\s*none.*?({said}).*?800\s*none.*?({said})", words)
    assert re.search(r"The (log|power|linear) law fits best", words)
    assert "Scaling laws fitted to the thresholds" in words
    for law in ("log", "power", "linear"):
        assert re.search(rf"{law} law, (best fit|[0-9.]+ behind)", words)


def test_nothing_is_loaded(text, outline):
    """No script, no frame, no style sheet or picture from anywhere; links go to this page or to arXiv."""
    assert not {tag for tag, _ in outline.elements} & {"script", "link", "img", "image", "iframe", "object", "base"}
    for _, attributes in outline.elements:
        assert not {"src", "srcset", "xlink:href", "onload", "onclick", "action"} & set(attributes)
        target = attributes.get("href")
        assert target is None or target.startswith(("#", "https://arxiv.org/abs/"))
    assert not re.search(r"@import|url\((?!#)", text)


def test_hostile_words_stay_words(text, outline):
    assert "<script" not in text
    assert outline.text.count(stores.HOSTILE) >= 6  # title, contents, caption, statements, error


def test_what_went_wrong_is_on_the_page(outline):
    words = " ".join(outline.text.split())
    assert "642 finished, 2 raised an exception, 8 measured a number that is not finite" in words
    assert "Trials that raised an exception" in words
    assert "run edelman2022-and --budget standard --where context_length=50 --where sample_size=150 --seed 90" in words
    assert "Curves that end in numbers that are not finite: 2" in words
    assert "Trials without such a value, which are not in the drawing: 2" in words


def test_where_the_numbers_come_from(outline):
    words = " ".join(outline.text.split())
    for fact in ("0123456789ab with uncommitted changes", "jax 0.10.0", "cpu: cpu", "3.11.7", "0 to 91", "2027-01-15"):
        assert fact in words
    assert "5 min 21 s running, 2 min 40 s compiling" in words


def test_references_lead_somewhere_and_ids_are_unique(outline):
    ids = [attributes["id"] for _, attributes in outline.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    targets = {attributes.get("href") for attributes in outline.all("a", "use")}
    targets |= {
        "#" + attributes["aria-labelledby"] for _, attributes in outline.elements if "aria-labelledby" in attributes
    }
    assert {target[1:] for target in targets if target and target.startswith("#")} <= set(ids)


def test_headings_are_in_order_and_table_headers_have_a_scope(outline):
    levels = [int(tag[1]) for tag, _ in outline.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    assert all(attributes.get("scope") in ("row", "col") for attributes in outline.all("th"))


def contrast(one: str, other: str) -> float:
    """Contrast of two colours by WCAG 2."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted([luminance(one), luminance(other)], reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_every_colour_of_text_and_line_stands_out_in_both_themes(text):
    themes = [
        dict(re.findall(r"(--[a-z0-9-]+): (#[0-9a-f]{6})", block))
        for block in re.findall(r":root \{(.*?)\}", text, re.S)
    ]
    assert len(themes) == 2
    for theme in themes:
        for name, colour in theme.items():
            if name not in ("--paper", "--soft", "--rule"):
                assert contrast(colour, theme["--paper"]) >= 4.5, name
    assert len({*themes[0]} ^ {*themes[1]}) == 0


def test_the_same_store_gives_the_same_page(store, text):
    assert page.render(store) == text


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    with Store(f"sqlite:///{tmp_path_factory.mktemp('store') / 'empty.db'}") as made:
        yield made


def test_an_empty_store_says_what_to_run(empty):
    text = page.render(empty)
    assert "Nothing has been run yet" in text
    assert "genscope reproduce --budget quick" in text


def test_a_study_without_trials_says_so(tmp_path):
    with Store(f"sqlite:///{tmp_path / 'new.db'}") as new:
        new.put_manifest(stores.AND.name, 1, stores.manifest(stores.AND))
        text = page.render(new)
    assert "none finished yet" in text
    assert "No finished trials for these figures: Samples against context length; Success." in text
    assert "<figure" not in text  # a line for all will do


def test_a_store_in_which_every_trial_failed(tmp_path):
    point = {"context_length": 50, "sample_size": 20}
    with Store(f"sqlite:///{tmp_path / 'failed.db'}") as failed:
        failed.put_manifest(stores.AND.name, 1, stores.manifest(stores.AND))
        failed.add([stores._finished(stores.AND, point, 0, {}, "boom")])
        outline = Outline(page.render(failed))
    assert "1 finished, 1 raised an exception" in outline.text
    assert "boom" in outline.text


def test_a_figure_of_a_newer_version_leaves_the_others(tmp_path):
    facts = stores.manifest(stores.AND)
    facts["figures"][0]["$type"] = "Hologram"
    with Store(f"sqlite:///{tmp_path / 'newer.db'}") as newer:
        newer.put_manifest(stores.AND.name, 1, facts)
        text = page.render(newer)
    assert "This figure cannot be drawn." in text
    assert "or a newer one" in text


def test_the_file_is_replaced_at_once_and_nothing_else_is_left(empty, tmp_path):
    out = tmp_path / "report.html"
    out.write_text("old")
    assert page.write_report(empty, out) == out
    assert out.read_text(encoding="utf-8") == page.render(empty)
    assert os.listdir(tmp_path) == ["report.html"]


def test_a_place_that_cannot_be_a_file_is_refused(empty, tmp_path):
    with pytest.raises(ValueError, match=r"for the report, a directory.*Give a file name such as report.html"):
        page.write_report(empty, tmp_path)
