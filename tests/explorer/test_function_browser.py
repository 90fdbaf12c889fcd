"""The room Function in Chromium."""

import re

from playwright.sync_api import expect

# How far what was already painted moved since; an entry without any never comes.
SHIFTED = """Promise.race([
  new Promise((done) => new PerformanceObserver((list) => done(list.getEntries().reduce((sum, e) => sum + e.value, 0)))
    .observe({ type: "layout-shift", buffered: true })),
  new Promise((done) => setTimeout(done, 300, 0)),
])"""


def test_type_click_and_press_keys(visit):
    page = visit("/function")
    expect(page).to_have_url(re.compile(r"/function\?expression="))
    expect(page.locator("#degree")).to_have_text("5")  # the majority of five, the first example
    page.get_by_role("textbox", name="Boolean expression").fill("x0 & x1")
    expect(page.locator("#degree")).to_have_text("2")
    expect(page.locator("#sparsity")).to_have_text("3")
    expect(page.locator("#levels .bars path")).to_have_count(3)
    expect(page.locator("#levels")).to_have_attribute("aria-label", re.compile("weight of each level: 0 0.25"))
    expect(page.locator("#live")).to_have_text("Degree 2, sparsity 3, 2 relevant variables.")
    assert "x0+%26+x1" in page.url  # a link that reproduces the view

    page.get_by_label("x0=0, x1=0: value 0").click()
    expect(page.get_by_role("textbox", name="Boolean expression")).to_have_value("table(0x9; x0, x1)")
    expect(page.locator("#degree")).to_have_text("2")
    expect(page.locator("#sparsity")).to_have_text("1")  # not exclusive or

    expect(page.get_by_label("x0=0, x1=0: value 1")).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_label("x0=1, x1=0: value 0")).to_be_focused()
    page.keyboard.press("Space")
    expect(page.get_by_role("textbox", name="Boolean expression")).to_have_value("table(0xb; x0, x1)")

    page.get_by_role("button", name="Parity of 4").click()
    expect(page.locator("#degree")).to_have_text("4")
    expect(page.locator("#total")).to_have_text("4")  # of values ±1, as textbooks have it
    page.go_back()
    expect(page.get_by_role("textbox", name="Boolean expression")).to_have_value("table(0xb; x0, x1)")
    page.go_forward()
    expect(page.locator("#degree")).to_have_text("4")
    page.get_by_label("0 and 1").check()
    expect(page.locator("#total")).to_have_text("1")
    page.get_by_role("link", name="Build a Transformer").click()
    expect(page.get_by_role("textbox", name="Boolean expression")).to_have_value("parity(x0, x1, x2, x3)")


def test_mistakes_are_underlined_where_they_are(visit):
    page = visit("/function?expression=x0+and+x1")
    field, message = page.get_by_role("textbox", name="Boolean expression"), page.locator("#message")
    expect(message).to_contain_text("Did you mean `&`?")
    expect(page.locator("mark")).to_have_text("and")
    expect(field).to_have_attribute("aria-invalid", "true")
    field.fill("parity(" + ", ".join(f"x{j}" for j in range(30)) + ")")
    expect(message).to_contain_text("genscope probe EXPR --bits 30")
    expect(page.locator("mark")).to_have_count(0)
    field.fill("")
    expect(message).to_contain_text("Write an operand here")
    field.fill("𝕏 & x0")  # one character for people, two for JavaScript
    expect(page.locator("mark")).to_have_text("𝕏")
    field.fill("x0 & " + " & ".join(["x1"] * 3000))  # too long for a query; behind the # it survives a reload
    expect(page.locator("#degree")).to_have_text("2")
    page.reload()
    expect(page.locator("#degree")).to_have_text("2")
    field.fill("x0 & x1")
    expect(message).to_contain_text("Up to 16 variables")
    expect(field).not_to_have_attribute("aria-invalid", "true")


def test_a_phone_and_a_projector(visit):
    page = visit("/function", viewport={"width": 390, "height": 844}, color_scheme="dark", has_touch=True)
    expect(page.locator("#levels .bars path").first).to_be_attached()
    shifted = page.evaluate(SHIFTED)
    assert shifted < 0.1
    for size in ({"width": 1920, "height": 1080}, {"width": 320, "height": 640}, {"width": 390, "height": 844}):
        page.set_viewport_size(size)
        for _ in range(100):  # drawings follow a little later
            if page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"):
                break
            page.wait_for_timeout(100)
        else:
            raise AssertionError(f"the page is wider than {size}")

    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    switch = page.get_by_role("button", name="Theme")
    switch.click()
    expect(switch).to_have_accessible_name("Theme: light")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != dark
    page.reload()
    expect(page.get_by_role("button", name="Theme: light")).to_be_visible()  # the choice is remembered

    page.get_by_role("button", name="What is sparsity?").click()
    help_text = page.get_by_role("dialog", name="Sparsity")
    expect(help_text).to_contain_text("lintilhac2026")
    page.keyboard.press("Escape")
    expect(help_text).to_be_hidden()


def test_a_server_that_has_gone_is_said(visit):
    page = visit("/function")
    expect(page.locator("#degree")).to_have_text("5")
    page.context.set_offline(True)
    page.get_by_role("textbox", name="Boolean expression").fill("x0")
    expect(page.locator("#message")).to_contain_text("is genscope serve still running?")


def test_a_chart_whose_script_did_not_load_says_so_and_is_drawn_later(visit):
    page = visit("/bounds")
    page.context.route("**/*plotly*", lambda route: route.abort())
    page.goto(page.url.replace("/bounds", "/function"))
    chart = page.locator("#levels")
    expect(chart).to_contain_text("could not be drawn")
    page.context.unroute("**/*plotly*")
    page.get_by_role("textbox", name="Boolean expression").fill("x0 ^ x1")
    expect(chart.locator(".plot-container")).to_be_visible()
    expect(chart).not_to_contain_text("could not be drawn")


def test_without_the_token_there_is_only_advice(visit, browser, server):
    page = browser.new_page()
    page.goto(server.address.partition("/?")[0] + "/function")
    expect(page.get_by_role("heading")).to_have_text("The explorer does not know you yet")
    page.close()
