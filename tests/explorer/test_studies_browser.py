"""The room Studies in Chromium: figures, trials, claims, a store that comes to life, names that are no markup."""

import io
import re

import polars as pl
import pytest
from playwright.sync_api import expect

from genscope.lab import Store
from genscope.papers import PAPERS
from tests.explorer.stores import HOSTILE, fill, records, two_selections
from tests.explorer.visiting import running


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    return f"sqlite:///{tmp_path_factory.mktemp('store') / 'store.db'}"


@pytest.fixture(scope="module")
def server(url):
    with running(url) as server:
        yield server


def choose_between_two(url):
    """A store with two selections of one study, few trials and many."""
    fill(url, "plain", HOSTILE)
    found = two_selections()
    with Store(url) as store:
        for selection in found:
            store.put_selection(selection)
    return found


def test_a_page_comes_to_life_with_its_store(visit, url):
    page = visit("/studies?study=plain")
    expect(page.get_by_role("heading", name="There is no store yet")).to_be_visible()
    expect(page.locator("#problem pre")).to_contain_text("genscope reproduce --budget quick")
    fill(url, "plain", HOSTILE)
    expect(page.locator("#figures figure")).to_have_count(4)
    expect(page.locator("#facts")).to_contain_text("36")
    expect(page.locator("#plans")).to_contain_text("36 of at most 192 trials")
    expect(page.locator("#workers")).to_contain_text("Nothing")
    with Store(url) as writer:
        batch = [record.trial for record in records("plain", seeds=range(4, 6))]
        writer.lease([batch])
        expect(page.locator("#workers")).to_contain_text("1 batch in progress")
        writer.add(records("plain", seeds=range(4, 6)), leased=batch)
    expect(page.locator("#facts")).to_contain_text("54")
    expect(page.locator("#facts")).to_contain_text(re.compile("per second|one in"))


def test_an_unknown_study_is_said_until_one_is_chosen(visit, url):
    fill(url, "plain", HOSTILE)
    page = visit("/studies?study=nope")
    expect(page.locator("#trouble")).to_contain_text("The store has no study nope")
    page.locator("#list button").last.click()
    expect(page.locator("#trouble")).to_be_hidden(timeout=15000)


def test_one_of_several_selections_is_chosen(visit, url):
    few, many = choose_between_two(url)
    page = visit("/studies?study=plain")
    chosen = page.get_by_label("Trials:")
    expect(chosen).to_have_value(many.id)
    chosen.select_option("budget standard seeds 2")
    repeat = page.locator("#figures details pre").first
    expect(repeat).to_contain_text("genscope run my_file.py:plain --budget standard --seeds 2")
    expect(chosen).to_have_value(few.id)


def test_trials_are_filtered_sorted_opened_and_taken_home(visit, url):
    fill(url, "plain", HOSTILE, seeds=range(6))
    choose_between_two(url)  # the newest of which names the file of the study
    page = visit("/studies?study=plain")
    page.get_by_role("tab", name="Figures").press("ArrowRight")
    expect(page.get_by_role("tab", name="Trials")).to_be_focused()
    table = page.locator("#table tbody tr")
    expect(page.locator("#count")).to_contain_text("1 to 50 of 54 trials")
    page.get_by_role("button", name="Next 50").click()
    expect(table).to_have_count(4)
    page.get_by_label("Show only").fill("long=40")
    expect(page.locator("#filter-error")).to_contain_text("Did you mean length?")
    page.get_by_label("Show only").fill("length=40 success=yes")
    expect(page.locator("#filter-error")).to_be_empty()
    expect(page.locator("#count")).to_contain_text("of 3 trials")
    page.get_by_role("button", name="seed").press("Enter")
    expect(page.locator("[aria-sort=ascending]")).to_have_text("seed")
    expect(page.get_by_role("button", name="seed")).to_be_focused()
    with page.expect_download() as waiting:
        page.get_by_role("link", name="Parquet").click()
    with open(waiting.value.path(), "rb") as file:
        kept = pl.read_parquet(io.BytesIO(file.read()))
    assert kept["length"].to_list() == [40] * 3
    table.first.get_by_role("button", name="Open").press("Enter")
    trial = page.get_by_role("dialog", name="Trial")
    expect(trial.locator(".chart .main-svg").first).to_be_visible()
    expect(trial).to_contain_text("genscope run my_file.py:plain --budget standard --where length=40")
    page.keyboard.press("Escape")
    expect(trial).to_be_hidden()


def test_names_from_a_store_and_from_the_address_are_shown_as_they_are(visit, url):
    fill(url, "plain", HOSTILE)
    page = visit("/studies?study=nobody&trial=nobody", viewport={"width": 390, "height": 844})
    expect(page.get_by_role("dialog", name="Trial")).to_contain_text("has no trial 'nobody'")
    page.keyboard.press("Escape")
    page.get_by_role("button", name=HOSTILE).click()
    expect(page.locator("#study-title")).to_have_text(f"Title of {HOSTILE}")
    expect(page.locator("#figures figure")).to_have_count(4)
    page.get_by_role("tab", name="Trials").click()
    expect(page.locator("#table tbody")).to_contain_text(HOSTILE)
    page.locator("#table").get_by_role("button", name="Open").first.click()
    expect(page.get_by_role("dialog", name="Trial")).to_contain_text(HOSTILE)
    page.get_by_role("button", name="Close").click()
    page.get_by_role("tab", name="Claims (2)").click()
    expect(page.locator(".claim")).to_have_count(2)
    expect(page.locator("#tally")).to_contain_text("holds 1 of 2")
    page.get_by_role("button", name="A2", exact=True).click()
    expect(page.locator(".claim")).to_have_count(1)
    for words in ("Remark on A2.", PAPERS["edelman2022"].errata[5], "Fixed before.", "a fault", "Title of plain: "):
        expect(page.locator("#claim-A2")).to_contain_text(words)
    expect(page.locator("#claim-A2 svg").last).to_be_visible()
    assert "claim=A2" in page.url
    page.reload()
    expect(page.locator("#claim-A2")).to_contain_text("Fixed before.")
    page.get_by_role("button", name="All claims").click()
    expect(page.locator(".claim")).to_have_count(2)
    page.go_back()
    expect(page.locator("#claim-A2")).to_contain_text("Fixed before.")
    page.go_back()
    expect(page.locator(".claim")).to_have_count(2)
    page.go_back()
    expect(page.locator("#table")).to_be_visible()
    assert page.locator("img").count() == 0
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
