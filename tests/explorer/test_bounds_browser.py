"""The room Bounds in Chromium: sliders, curves, links, errors, two bounds, a phone."""

import re

from playwright.sync_api import expect

from genscope import bounds

SHIFTS = """() => new Promise((done) => {
  let sum = 0;
  const add = (each) => { if (!each.hadRecentInput) sum += each.value; };
  new PerformanceObserver((list) => list.getEntries().forEach(add)).observe({ type: "layout-shift", buffered: true });
  setTimeout(() => done(sum), 100);
})"""


def value(page, number=0):
    return page.locator(".promise .value").nth(number)


def drawn(page, which="x"):
    expect(page.locator(f"[data-which={which}] .chart .main-svg").first).to_be_visible()


def test_sliders_by_keyboard_move_the_number_and_the_address(visit):
    page = visit("/bounds")
    drawn(page)
    drawn(page, "y")
    expect(value(page)).to_have_text("0.1500599")
    assert page.evaluate(SHIFTS) < 0.1  # what Chromium's makers call good
    slider = page.get_by_label("samples, slider")
    slider.focus()
    for _ in range(40):
        slider.press("ArrowRight")
    expect(value(page)).not_to_have_text("0.1500599")
    samples = float(page.get_by_label("samples", exact=True).input_value())
    wanted = bounds.pac_bayes(norm_squared=100, trace=10, constant=0.1, samples=samples)
    expect(value(page)).to_have_text(f"{wanted.value:.7g}")
    expect(page.locator(".promise pre")).to_contain_text(f"--samples {samples:.0f}")
    expect(page).to_have_url(re.compile(rf"samples%3D{samples:.0f}"))
    expect(page.locator("#x-said")).to_contain_text("stops being vacuous at samples = 2")
    again = visit(re.sub(r"^http://[^/]+", "", page.url))
    expect(value(again)).to_have_text(f"{wanted.value:.7g}")


def test_a_bad_value_is_told_beside_its_field_and_mended(visit):
    page = visit("/bounds?bounds=lower+context_length%3D300+support_size%3D3")
    expect(value(page)).to_have_text("22.01303")
    field = page.get_by_label("support size", exact=True)
    field.fill("-3")
    beside = page.locator("[data-argument=support_size] .error")
    expect(beside).to_contain_text("a whole number at least 1")
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(field).to_be_focused()
    field.fill("4")
    expect(beside).to_be_empty()
    expect(value(page)).to_have_text(f"{bounds.lower(context_length=300, support_size=4).value:.7g}")
    page.locator("#x-from").fill("500000")
    page.locator("#x-to").fill("3")
    expect(page.locator("[data-which=x] > .message")).to_contain_text("from a number to a larger one")


def test_two_bounds_lie_over_each_other_on_a_phone(visit):
    place = "/bounds?bounds=lower+context_length%3D300+support_size%3D3"
    page = visit(place, viewport={"width": 390, "height": 844}, color_scheme="dark")
    page.get_by_role("combobox", name="Bound", exact=True).select_option("vc-cover")
    page.get_by_role("button", name="Add to the plot").click()
    expect(page.locator(".promise")).to_have_count(2)
    expect(page.locator("#x-said")).to_contain_text("It does not depend on this argument, so its line is flat.")
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
    page.get_by_role("button", name="Remove").first.click()
    expect(page.locator(".promise")).to_have_count(1)
    expect(page.locator(".promise h3")).to_contain_text("vc-cover")
    page.get_by_role("button", name="What is vacuous?").click()
    expect(page.get_by_role("dialog", name="Vacuous")).to_be_visible()


def test_an_address_that_names_no_bound_says_so_and_the_page_goes_on(visit):
    page = visit("/bounds?bounds=nothing")
    expect(page.get_by_role("alert").first).to_contain_text("the bounds are linear-cover")
    page.get_by_role("combobox", name="Bound", exact=True).select_option("margin")
    page.get_by_role("button", name="Show only this one").click()
    expect(value(page)).to_have_text("0.2980123")
    expect(page.locator("#problem")).to_be_empty()


def test_the_theorem_is_drawn_as_a_formula(visit):
    page = visit("/bounds")
    page.get_by_text("The theorem", exact=True).click()
    formula = page.locator(".promise details math").first
    expect(formula).to_be_visible()
    box = formula.bounding_box()
    assert box is not None
    assert box["width"] > 40
    expect(page.locator(".promise details")).not_to_contain_text("\\")
