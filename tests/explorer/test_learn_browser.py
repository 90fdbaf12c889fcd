"""The room Learn in Chromium: a run that is watched, a threshold, and a stop."""

import re

import pytest
from playwright.sync_api import expect

from tests.explorer.visiting import running

PATIENT = {"timeout": 300_000}  # programs are compiled first, on a machine that may be busy
SMALL = "/learn?expression=x0+%26+x1&networks=linear&length=4&sample=60"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with running(f"sqlite:///{tmp_path_factory.mktemp('store') / 'runs.db'}") as server:
        yield server


def test_train_once_reload_and_ask_for_the_threshold(visit):
    page = visit(SMALL)
    expect(page.locator("#command")).to_have_text(
        "genscope learn 'x0 & x1' --context-length 4 --network linear --budget quick"
    )
    page.get_by_role("button", name="Train once").click()
    expect(page.get_by_role("button", name="Train once")).to_be_disabled()
    expect(page.get_by_role("button", name="Stop")).to_be_enabled()
    expect(page.locator("#state")).to_have_text(re.compile("Done; what was found is in the store"), **PATIENT)
    expect(page.locator("#maps p")).to_have_text(re.compile(r"linear model has (not )?learned it"))
    expect(page.locator("#losses .scatterlayer .js-line")).to_have_count(1)
    expect(page.locator("#accuracies")).to_have_attribute("aria-label", re.compile("linear model has"))
    expect(page.locator("#maps .annotation")).to_have_count(2)  # the bits that matter
    expect(page.get_by_role("button", name="Stop")).to_be_disabled()

    page.reload()  # the server still knows it
    expect(page.locator("#maps p")).to_have_text(re.compile(r"linear model has (not )?learned it"))

    page.get_by_role("button", name="How many samples are needed?").click()
    expect(page.locator("#answer")).to_have_text(re.compile("x0 & x1 at T = 4: a linear model needs"), **PATIENT)
    expect(page.locator("#curves .scatterlayer .points path").first).to_be_attached()
    expect(page.locator("#thresholds tr")).to_have_count(1)
    expect(page.locator("#watching")).to_be_hidden()
    assert "expression=x0+%26+x1" in page.url
    # Its process ends a little after its answer, and until then the server refuses what the next test asks for.
    expect(page.locator("#state")).to_have_text(re.compile("Done; what was found is in the store"), **PATIENT)


def test_a_mistake_is_underlined_and_a_size_is_refused(visit):
    page = visit(SMALL)
    page.get_by_role("textbox", name="Boolean expression").fill("x0 and x1")
    page.get_by_role("button", name="Train once").click()
    expect(page.locator("mark")).to_have_text("and")
    page.get_by_role("textbox", name="Boolean expression").fill("x0")
    page.get_by_label("Bits T", exact=True).fill("1000")
    page.get_by_role("button", name="Train once").click()
    expect(page.locator("#state")).to_contain_text("from 1 to 128")
    page.get_by_role("checkbox", name="linear model").uncheck()
    page.get_by_label("Bits T", exact=True).fill("4")
    page.get_by_role("button", name="Train once").click()
    expect(page.locator("#state")).to_contain_text("Choose one or more")


def test_nothing_is_started_before_the_page_knows_what_runs(visit):
    page = visit(SMALL)
    place, held = page.url, []
    page.goto("about:blank")  # else a question of this page may be the one that is held and let go
    page.route("**/api/learn/look", lambda route: held.append(route))
    page.goto(place)
    start = page.get_by_role("button", name="Train once")
    expect(start).to_be_disabled()
    page.wait_for_timeout(500)  # it stays so
    expect(start).to_be_disabled()
    held.pop(0).continue_()
    expect(start).to_be_enabled()


def test_a_training_can_be_stopped(visit):
    page = visit("/learn?expression=x0+%5E+x1+%5E+x2&networks=mlp&length=64&sample=4000")
    page.get_by_role("button", name="How many samples are needed?").click()
    page.get_by_role("button", name="Stop").click(**PATIENT)
    expect(page.locator("#state")).to_contain_text("Stopped", **PATIENT)
    expect(page.get_by_role("button", name="Train once")).to_be_enabled(**PATIENT)


def test_the_expression_of_the_room_function_comes_along_and_the_page_fits(visit):
    page = visit("/function?expression=maj(x0,x1,x2)", viewport={"width": 390, "height": 844}, color_scheme="dark")
    page.get_by_role("link", name="Train networks on it").click()
    expect(page.get_by_role("textbox", name="Boolean expression")).to_have_value("maj(x0,x1,x2)")
    for width in (1920, 320, 390):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
