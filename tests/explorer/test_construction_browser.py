"""The room Construction in Chromium."""

import re

from playwright.sync_api import expect

from genscope.models.file import load


def test_build_flip_and_download(visit, tmp_path):
    page = visit("/construction?expression=maj(x1,x4,x6)&context_length=8")
    expect(page.locator("#exact")).to_have_text("exact", timeout=120_000)
    expect(page.locator("#norms tr")).to_have_count(5)
    expect(page.locator("#output")).to_have_text(re.compile(r"^0 value 0|e−\d+ value 0"))
    expect(page.locator("#maps .heatmaplayer image").first).to_be_attached()
    expect(page.get_by_label("x4, relevant: 0")).to_be_visible()

    page.get_by_label("x1, relevant: 0").click()
    expect(page.locator("#output")).to_contain_text("value 0")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    expect(page.get_by_label("x4, relevant: 0")).to_be_focused()
    page.keyboard.press("Space")
    expect(page.locator("#output")).to_contain_text("value 1")
    expect(page).to_have_url(re.compile("bits=01001000"))
    expect(page.locator("#maps .map")).to_have_attribute("aria-label", re.compile("Attention of CLS. CLS: x1 0.3"))

    with page.expect_download() as waiting:
        page.get_by_role("link", name="Download").click()
    path = tmp_path / waiting.value.suggested_filename
    waiting.value.save_as(path)
    assert path.name == "model.safetensors"
    assert load(path).encoding.context_length == 8

    page.get_by_role("combobox", name="Network").select_option("full")
    expect(page.locator("#exact")).to_have_text("as promised", timeout=120_000)
    expect(page.locator("#trace")).not_to_have_text("–")
    expect(page.locator("#maps .map")).to_have_count(2)
    expect(page.locator("#command")).to_contain_text("genscope construct fourier --components")


def test_what_does_not_fit_is_said(visit):
    page = visit("/construction?expression=x0+%26+x9&context_length=10", viewport={"width": 390, "height": 844})
    expect(page.locator("#exact")).to_have_text("exact", timeout=120_000)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    length = page.get_by_role("spinbutton", name="Context length")
    length.fill("5")
    expect(page.locator("mark")).to_have_text("x9")
    expect(page.locator("#message")).to_contain_text("Use a smaller index or")
    length.fill("65")
    expect(page.locator("#message")).to_contain_text("from 1 to 64")
    length.fill("")
    expect(page.locator("#message")).to_contain_text("from 1 to 64")
    length.fill("10")
    expect(page.locator("#message")).to_contain_text("Up to 8 relevant")
