"""A hostile server on another port of the same machine, in a real browser that has entered the explorer."""

import http.server
import re
import threading

import pytest
from playwright.sync_api import expect

from genscope.explorer import browser as browsers
from tests.explorer.visiting import running

# What a page of another port may try: each line tells what came of it.
ATTACK = """
const place = {place!r};
const tries = {{
  read: () => fetch(place + "function", {{credentials: "include"}}).then((answer) => answer.text()),
  ask: () => fetch(place + "api/function/analyse", {{method: "POST", credentials: "include",
    headers: {{"content-type": "application/json"}}, body: '{{"expression": "x0"}}'}}).then((answer) => answer.text()),
  blind: () => fetch(place + "api/function/analyse", {{method: "POST", mode: "no-cors", credentials: "include",
    body: '{{"expression": "x0"}}'}}).then((answer) => answer.text()),
  script: () => new Promise((done, failed) => {{
    const script = document.createElement("script");
    Object.assign(script, {{onload: () => done("loaded"), onerror: failed, src: place + "files/studies/trials"}});
    document.head.append(script);
  }}),
  frame: () => new Promise((done) => {{
    const frame = document.createElement("iframe");
    frame.onload = () => {{ try {{ done(frame.contentDocument.body.innerText); }} catch (error) {{ done(""); }} }};
    frame.src = place + "function";
    document.body.append(frame);
  }}),
  cookie: async () => document.cookie,
}};
(async () => {{
  const found = {{}};
  for (const [name, attempt] of Object.entries(tries)) {{
    try {{ found[name] = await attempt(); }} catch (error) {{ found[name] = ""; }}
  }}
  document.title = JSON.stringify(found);
}})();
"""


class Hostile(http.server.ThreadingHTTPServer):
    """A server that writes down what a browser tells it, and serves pages of an attacker."""

    def __init__(self):
        self.requests = []
        self.page, self.cookies = "<p>Hello</p>", []
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def base(self):
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(http.server.BaseHTTPRequestHandler):
    server: Hostile  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_GET(self):
        self.server.requests.append((self.path, dict(self.headers)))
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        for cookie in self.server.cookies:
            self.send_header("Set-Cookie", cookie)
        self.end_headers()
        self.wfile.write(self.server.page.encode())

    do_POST = do_GET

    def log_message(self, format, *args):
        pass


@pytest.fixture
def hostile():
    server = Hostile()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join(30)
    server.server_close()


@pytest.fixture
def page(browser, server):
    """A page of the explorer, in a browser that has entered; other ports are open to it."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(server.address)
    expect(page.locator("#degree")).to_have_text("5")
    yield page
    context.close()


def root_of(page):
    return re.match(r"http://[^/]+/[^/]+/", page.url)[0]


def value_of(page):
    return next(cookie["value"] for cookie in page.context.cookies() if cookie["name"] == "genscope")


def test_a_server_on_another_port_is_sent_no_secret(page, server, hostile):
    other = page.context.new_page()
    for path in ("/", "/function", "/static/x.js", "/api/function/analyse", "/genscope/"):
        other.goto(hostile.base + path)
    page.evaluate("address => { location.href = address; }", hostile.base + "/from-the-explorer")
    page.wait_for_url("**/from-the-explorer")
    secrets = (value_of(page), server.address.partition("token=")[2], page.context.cookies()[0]["path"])
    (left,) = [headers for path, headers in hostile.requests if path == "/from-the-explorer"]
    assert "Referer" not in left
    for path, headers in hostile.requests:
        assert "Cookie" not in headers, path
        assert not [secret for secret in secrets if secret in str(headers)]


def test_the_private_path_is_what_keeps_the_cookie_from_other_ports(page, hostile):
    # The control: a server that knew the path would be sent the cookie. So nobody outside is told the path.
    path = page.context.cookies()[0]["path"]
    page.context.new_page().goto(f"{hostile.base}{path}/x")
    assert value_of(page) in hostile.requests[0][1]["Cookie"]


@pytest.mark.parametrize("knows_the_path", [False, True])
def test_a_page_of_another_port_gets_nothing_out_of_the_explorer(page, server, hostile, knows_the_path):
    place = root_of(page) if knows_the_path else server.address.partition("?")[0]
    hostile.page = f"<body><script>{ATTACK.format(place=place)}</script>"
    other = page.context.new_page()
    other.goto(hostile.base)
    other.wait_for_function("document.title.startsWith('{')")
    assert set(other.evaluate("JSON.parse(document.title)").values()) == {""}
    other.evaluate("place => { window.opened = window.open(place); }", root_of(page) + "function")
    other.wait_for_timeout(500)
    assert other.evaluate("() => { try { return window.opened.document.title; } catch { return null; } }") is None
    expect(page.locator("#degree")).to_have_text("5")


def test_cookies_from_another_port_lock_nobody_out(page, hostile):
    path = page.context.cookies()[0]["path"]
    hostile.cookies = ["genscope=tossed; Path=/", f"genscope=tossed; Path={path}/function"]
    page.context.new_page().goto(hostile.base)
    page.reload()
    expect(page.locator("#degree")).to_have_text("5")
    page.get_by_role("textbox", name="Boolean expression").fill("x0 & x1")
    expect(page.locator("#degree")).to_have_text("2")


def test_a_file_opens_the_explorer_once(browser, server, monkeypatch):
    opened = []
    monkeypatch.setattr(browsers.webbrowser, "open", opened.append)
    context = browser.new_context()
    page = context.new_page()
    with browsers.opened(server.address_for_once()):
        while not opened:
            page.wait_for_timeout(20)
        page.goto(opened[0])
        page.wait_for_url(re.compile(r"^http://127\.0\.0\.1:\d+/[\w-]{24}/function$"))
        expect(page.locator("#degree")).to_have_text("5")
        again = browser.new_page()
        again.goto(opened[0])
        expect(again.get_by_role("heading")).to_have_text("The explorer does not know you yet")
        again.close()
    cookie = context.cookies()[0]
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert root_of(page).endswith(cookie["path"] + "/")
    context.close()


def test_a_link_from_an_earlier_start_leads_to_the_same_view(page, server):
    base = server.address.partition("/?")[0]
    page.goto(f"{base}/earlier-start-0123456789/function?expression=x0%20%26%20x1")
    page.wait_for_url(root_of(page) + "function?expression=x0*x1")
    expect(page.locator("#degree")).to_have_text("2")
    page.goto(f"{base}/function#expression=x0")
    expect(page.locator("#degree")).to_have_text("1")


def test_after_a_new_start_the_old_cookie_opens_nothing(page, server):
    with running("sqlite:///none.db") as later:
        cookie = page.context.cookies()[0]
        page.context.add_cookies([{"name": "genscope", "value": cookie["value"], "domain": "127.0.0.1", "path": "/"}])
        page.goto(later.address.partition("?")[0])
        expect(page.get_by_role("heading")).to_have_text("The explorer does not know you yet")
