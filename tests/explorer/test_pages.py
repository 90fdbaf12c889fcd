"""Pages: help for every quantity, labels for every field, and sources that exist."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from genscope.explorer.glossary import GLOSSARY
from genscope.papers import PAPERS

ROOMS = ("function", "construction", "bounds", "learn", "studies")


class Page(HTMLParser):
    """The ids of a page, what refers to them, and the fields that have no label."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.wanted, self.unnamed, self.labelled, self.inside = [], [], [], set(), 0
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if "id" in given:
            self.ids.append(given["id"])
        for name in ("popovertarget", "for", "aria-labelledby", "aria-describedby"):
            self.wanted += (given.get(name) or "").split()
        self.inside += tag == "label"
        if tag == "label":
            self.labelled.add(given.get("for"))
        if tag in ("input", "select", "textarea") and not self.inside and "aria-label" not in given:
            self.unnamed.append(given.get("id"))

    def handle_endtag(self, tag):
        self.inside -= tag == "label"


@pytest.mark.parametrize("room", ROOMS)
def test_a_page_refers_to_what_it_has(client, room):
    answer = client.get(f"/{room}")
    assert answer.status_code == 200
    page = Page(answer.text)
    assert len(set(page.ids)) == len(page.ids)
    assert not set(page.wanted) - set(page.ids)
    assert not [name for name in page.unnamed if name not in page.labelled]
    assert answer.text.count("aria-current") == 1
    assert '<html lang="en"' in answer.text


@pytest.mark.parametrize("name", GLOSSARY)
def test_a_word_is_explained_in_two_sentences_with_a_source(name):
    term = GLOSSARY[name]
    assert len(re.findall(r"[.)](?= [A-ZΧΦχφ]|$)", term.text)) == 2, term.text
    cited = re.findall(r"\b[a-z]+20\d\d\b", term.source)
    assert all(key in PAPERS for key in cited)
    documents = re.findall(r"docs/[\w.]+", term.source)
    assert all((Path(__file__).parents[2] / document).exists() for document in documents)
    assert term.source
