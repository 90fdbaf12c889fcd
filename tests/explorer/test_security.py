"""Other sites, other names and other programs' manners: what may not reach the explorer."""

import concurrent.futures
import contextlib
import json
import re
import socket
import time

import httpx
import pytest

from genscope.explorer import app
from genscope.explorer import server as server_module
from genscope.explorer.room import Room
from tests.explorer.visiting import alone, cookie_of, entered, running

ASK = {"expression": "x0 & x1"}


def post(client, headers=(), **options):
    return client.post("/api/function/analyse", json=ASK, headers=dict(headers), **options)


def raw(server, data, *, patience=20):
    """Send bytes; all that comes back until the server closes the connection."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=patience) as connection:
        connection.sendall(data)
        parts = []
        while part := connection.recv(65536):
            parts.append(part)
        return b"".join(parts)


class TestTheToken:
    def test_becomes_a_cookie_that_scripts_and_other_ports_do_not_get(self, server):
        answer = alone("GET", server.address + "&expression=x0", headers={"sec-fetch-site": "none"})
        assert answer.status_code == 303
        root, _, rest = answer.headers["location"].rpartition("/")
        assert re.fullmatch(r"/[\w-]{24}", root)
        assert rest == "?expression=x0"
        value, *rules = answer.headers["set-cookie"].split("; ")
        assert sorted(rules) == ["HttpOnly", "Max-Age=7200", f"Path={root}", "SameSite=Strict"]
        assert value.partition("=")[2] not in server.address  # what the browser keeps is not the token
        assert root not in server.address

    def test_gives_every_browser_a_value_of_its_own(self, server):
        first, second = (alone("GET", server.address).headers["set-cookie"] for _ in range(2))
        assert first.partition(";")[0] != second.partition(";")[0]
        assert first.partition(";")[2] == second.partition(";")[2]

    def test_is_needed_for_pages_questions_and_files(self, server, client):
        root = str(client.base_url).rstrip("/")
        base = server.address.partition("/?")[0]
        for path in ("/", "/function", "/studies", "/files/construction/model.safetensors", "/nothing"):
            for place in (base, root):  # the private path alone opens nothing
                answer = alone("GET", place + path)
                assert answer.status_code == 403, path
                assert "Open the address that genscope serve printed" in answer.text
                assert client.base_url.path.strip("/") not in answer.text
                assert "set-cookie" not in answer.headers
        assert alone("POST", f"{root}/api/function/analyse", json=ASK).status_code == 403
        cookie = {"cookie": cookie_of(client)}
        assert alone("POST", f"{base}/api/function/analyse", json=ASK, headers=cookie).status_code == 403
        assert alone("POST", f"{root}/api/function/analyse", json=ASK, headers=cookie).status_code == 200

    def test_is_no_cookie_and_a_cookie_no_token(self, server, client):
        token, value = server.address.partition("token=")[2], cookie_of(client).partition("=")[2]
        assert alone("GET", f"{client.base_url}function", headers={"cookie": f"genscope={token}"}).status_code == 403
        assert alone("GET", f"{client.base_url}function", params={"token": value}).status_code == 403

    @pytest.mark.parametrize("token", ["", "wrong", "é", "%00", "x" * 5000])
    def test_that_is_wrong_opens_nothing(self, server, token):
        answer = alone("GET", server.address.partition("?")[0], params={"token": token})
        assert answer.status_code == 403
        assert "set-cookie" not in answer.headers

    def test_never_leads_to_another_host(self, server, client):
        root = client.base_url.path
        token = server.address.partition("token=")[2]
        base = server.address.partition("/?")[0]
        for path, place in (("//evil.example/", "evil.example/"), ("/%5Cevil.example", "%5Cevil.example")):
            assert alone("GET", f"{base}{path}?token={token}").headers["location"] == root + place

    def test_of_a_link_on_another_page_leads_on_by_a_page_of_ours(self, server, client):
        link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
        base, _, query = server.address.partition("?")
        answer = alone("GET", f'{base}a"b?{query}&expression=x0%22%3E', headers=link)
        assert answer.status_code == 200
        assert f'content="0; url={client.base_url.path}a%22b?expression=x0%22%3E"' in answer.text
        assert "token" not in answer.text


def test_a_cookie_of_the_same_name_locks_nobody_out(client):
    for cookie in (f"genscope=tossed; {cookie_of(client)}", f"{cookie_of(client)}; genscope=", "genscope; =; a=b"):
        expected = 200 if cookie_of(client) in cookie else 403
        assert alone("GET", f"{client.base_url}function", headers={"cookie": cookie}).status_code == expected


def test_answers_to_who_is_inside_begin_their_time_again(client):
    for answer in (client.get("/function"), client.get("/nothing"), post(client)):
        assert answer.headers["set-cookie"].partition(";")[0] == cookie_of(client)
        assert "Max-Age=7200" in answer.headers["set-cookie"]


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "evil.example:80", "a@127.0.0.1", "127.0.0.1/x", "[::1", ""]
)
def test_a_foreign_name_reaches_nothing(server, client, host):
    # DNS rebinding: the attacker's name resolves to 127.0.0.1, and the browser sends it as Host.
    for path in ("/", "/function", "/static/x.js", "/?" + server.address.partition("?")[2]):
        answer = client.get(path, headers={"host": host}, follow_redirects=False)
        assert answer.status_code in (400, 421), path
        assert "set-cookie" not in answer.headers
    assert post(client, {"host": host}).status_code in (400, 421)


def test_a_tunnel_may_have_another_port(client):
    assert post(client, {"host": "localhost:9999", "origin": "http://localhost:9999"}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:1"},  # another program's page on this machine
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"},  # a form
    ],
)
def test_another_page_may_not_ask(client, headers):
    answer = post(client, headers)  # with the cookie
    assert answer.status_code == 403
    assert "Another page asked" in answer.text


def test_another_page_may_link_here_but_not_embed_or_download(client):
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    assert client.get("/function", headers=link).status_code == 200
    assert client.get("/function", headers=link | {"sec-fetch-dest": "iframe"}).status_code == 403
    assert client.get("/files/construction/model.safetensors", headers=link).status_code == 403
    static = next(
        line for line in client.get("/function").text.split('"') if line.endswith("room.js") or "theme" in line
    )
    assert client.get(static, headers={"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}).status_code == 403


def test_its_own_pages_may(client):
    own = {"origin": f"http://127.0.0.1:{client.base_url.port}", "sec-fetch-site": "same-origin"}
    assert post(client, own).json()["degree"] == 2


def test_every_answer_carries_the_policy(client):
    for path in ("/function", "/nothing", "/static/nothing.js"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["cache-control"] == "no-store"


def test_pages_hold_no_script_and_no_other_host(client):
    for room in ("function", "construction", "bounds", "studies"):
        page = client.get(f"/{room}").text
        assert page.count("<script") == page.count("<script src=") + page.count('<script type="module" src=')
        assert "onclick" not in page
        assert 'src="http' not in page


@pytest.mark.parametrize(
    "path",
    [
        "/static/../../../pyproject.toml",
        "/static/%2e%2e/%2e%2e/app.py",
        "/static/..%2f..%2fapp.py",
        "/static//etc/passwd",
        "/static/plotly-../../x",
        "/files/construction/..%2f..%2f..%2fetc%2fpasswd",
        "/..%5c..%5capp.py",
        "/static/%00",
    ],
)
def test_no_path_reaches_the_file_system(server, client, path):
    rest = f"HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nCookie: {cookie_of(client)}\r\nConnection: close\r\n\r\n"
    for place in (path, client.base_url.path.rstrip("/") + path):
        answer = raw(server, f"GET {place} {rest}".encode())
        outside = place == path and not path.startswith("/static/")
        assert answer.startswith(b"HTTP/1.1 403" if outside else b"HTTP/1.1 404"), answer[:300]
        assert b"import" not in answer
        assert b"root:" not in answer


@pytest.mark.parametrize(
    ("body", "status", "advice"),
    [
        (b"{", 400, "not JSON"),
        (b"", 400, "not JSON"),
        (b"\xff\xfe\xff", 400, "not JSON"),
        (b"[1, 2]", 400, "Send an object"),
        (b'{"expression": NaN}', 400, "NaN is not a number"),
        (b"[" * 100_000, 400, "not JSON"),
        (b'{"expression": 3}', 422, "text of at most"),
        (b"{}", 422, "text of at most"),
        (b'{"expression": "x0", "values": []}', 422, "signs, bits"),
        (b'{"expression": "' + b"x" * 300_000 + b'"}', 413, "at most 262,144 bytes"),
    ],
)
def test_a_malformed_question_is_told_what_is_wrong(client, body, status, advice):
    answer = client.post("/api/function/analyse", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == status
    assert advice in answer.json()["message"]


def test_a_form_is_no_question(client):
    answer = client.post("/api/function/analyse", content=json.dumps(ASK), headers={"content-type": "text/plain"})
    assert answer.status_code == 415
    assert "Send JSON" in answer.json()["message"]


def test_a_huge_body_is_cut_short(server, client):
    def endless():
        for _ in range(10_000):
            yield b" " * 65536
        raise AssertionError("the server took all of it")

    try:
        answer = client.post("/api/function/analyse", content=endless(), headers={"content-type": "application/json"})
        assert answer.status_code == 413
    except (httpx.WriteError, httpx.ReadError, httpx.RemoteProtocolError):
        pass  # the server closed the connection while we were still writing
    assert post(client).status_code == 200


class TestSlowClients:
    def test_a_head_that_does_not_end_is_given_up_and_holds_up_nobody(self, server, client, monkeypatch):
        monkeypatch.setattr(server_module, "HEAD_SECONDS", 1.0)
        start = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(40) as pool:
            slow = [pool.submit(raw, server, b"GET / HTTP/1.1\r\nHost: 127") for _ in range(40)]
            assert post(client).status_code == 200
            assert {answer.result(30) for answer in slow} == {b""}
        assert time.monotonic() - start > 0.9  # they were given their time

    def test_a_second_head_is_given_up_too(self, server, monkeypatch):
        monkeypatch.setattr(server_module, "HEAD_SECONDS", 0.3)
        whole = f"GET /static/none HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode()
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
            connection.sendall(whole)
            assert connection.recv(65536).startswith(b"HTTP/1.1 404")
            connection.sendall(whole[:20])
            while connection.recv(65536):  # until the server closes: well before IDLE_SECONDS
                pass

    def test_an_answer_that_nobody_takes_is_given_up(self, server, client, monkeypatch):
        monkeypatch.setattr(server_module, "TAKE_SECONDS", 0.3)
        plotly = client.get("/function").text.partition('data-plotly="')[2].partition('"')[0]
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.settimeout(20)
            connection.connect(("127.0.0.1", server.port))
            connection.sendall(f"GET {plotly} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode())
            time.sleep(2)
            size = 0
            with contextlib.suppress(ConnectionResetError):
                while part := connection.recv(65536):
                    size += len(part)
        assert size < 4_000_000  # of nearly five

    def test_a_body_that_does_not_come_is_given_up(self, server, client, monkeypatch):
        monkeypatch.setattr(app, "BODY_SECONDS", 0.3)
        place = f"{client.base_url.path}api/function/analyse"
        head = f"POST {place} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nCookie: {cookie_of(client)}\r\n"
        answer = raw(server, (head + "Content-Type: application/json\r\nContent-Length: 99\r\n\r\n{").encode())
        assert answer.startswith(b"HTTP/1.1 408")
        assert b"Send it again" in answer


def test_our_own_mistakes_are_not_shown_to_visitors(capfd):
    def fail(ask):
        return {}["secret"]

    rooms = [lambda store: Room("function", "Function", "", {"fail": fail})]
    with running("sqlite:///none.db", rooms=rooms) as server, entered(server) as client:
        answer = client.post("/api/function/fail", json={})
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert "KeyError: 'secret'" in capfd.readouterr().err
