"""`genscope serve`: how it starts, what it says, how it ends, and how many it serves at once."""

import concurrent.futures
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import webbrowser
from pathlib import Path

import httpx
import numpy as np
import pytest
import uvicorn

from genscope.explorer import serve
from genscope.explorer.function_room import GALLERY
from tests.cli.program import invoke
from tests.explorer.visiting import entered


def test_it_starts_prints_its_address_and_ends_quietly(launch, tmp_path):
    process = launch(sys.executable, "-m", "genscope", "serve", "--no-browser", cwd=tmp_path)
    address = process.stdout.readline().strip()
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{32}", address)
    with httpx.Client(follow_redirects=True, timeout=60, verify=False) as client:
        answer = client.get(address)
        assert answer.status_code == 200
        assert "token" not in str(answer.url)
        assert re.fullmatch(r"/[\w-]{24}/function", answer.url.path)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert out == ""
    assert "Traceback" not in err
    assert "ended" in err
    assert list(tmp_path.iterdir()) == []  # looking makes no store


@pytest.fixture
def opener(tmp_path):
    """A program that the system takes for the browser: it writes down its command line and the file it was given."""
    path = tmp_path / "opener"
    path.write_text(
        f"#!{sys.executable}\n"
        "import json, os, pathlib, sys, urllib.parse\n"
        "file = pathlib.Path(urllib.parse.unquote(sys.argv[1].removeprefix('file://')))\n"
        "modes = [oct(each.stat().st_mode & 0o777) for each in (file, file.parent)]\n"
        "seen = {'line': sys.argv, 'modes': modes, 'page': file.read_text(), 'file': str(file)}\n"
        f"pathlib.Path({str(tmp_path / 'seen')!r}).write_text(json.dumps(seen))\n"
    )
    path.chmod(0o700)
    return path


def test_the_browser_is_opened_with_no_secret_on_a_command_line(launch, opener, tmp_path):
    process = launch(sys.executable, "-m", "genscope", "serve", cwd=tmp_path, env=os.environ | {"BROWSER": str(opener)})
    address = process.stdout.readline().strip()
    token = address.partition("token=")[2]
    deadline = time.monotonic() + 60
    while not (tmp_path / "seen").exists() or not (tmp_path / "seen").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    seen = json.loads((tmp_path / "seen").read_text())
    once = re.search(r'url=(http://[^"]*)"', seen["page"])[1]
    secret = once.partition("token=")[2]
    assert seen["modes"] == ["0o600", "0o700"]
    lines = [*seen["line"], Path(f"/proc/{process.pid}/cmdline").read_text()]
    assert not [line for line in lines if secret in line or token in line]
    assert secret != token
    assert httpx.get(once, verify=False).status_code == 303
    assert httpx.get(once, verify=False).status_code == 403  # it opened once
    assert httpx.get(address, verify=False).status_code == 303
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert not Path(seen["file"]).parent.exists()


def test_no_browser_is_opened_if_none_is_wanted(monkeypatch):
    opened, told = [], []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: time.sleep(0.2))
    serve("sqlite:///none.db", browser=False, tell=told.append)
    assert not opened
    assert len(told) == 1


def test_it_is_ready_without_jax():
    # Importing JAX takes a second; the whole start may take two.
    code = (
        "import sys, time; from genscope.explorer.server import Server; server = Server('sqlite:///none.db'); "
        "server._socket.close(); print(time.process_time(), 'jax' in sys.modules, 'plotly' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert said[1:] == ["False", "False"]
    assert float(said[0]) < 2


def test_a_port_that_is_taken_is_said():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = invoke("serve", "--no-browser", "--port", taken.getsockname()[1])
    assert result.exit_code == 2
    assert "Choose another --port" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("port", [-1, 80, 65536])
def test_a_port_that_is_none_is_said(port):
    result = invoke("serve", "--no-browser", "--port", port)
    assert result.exit_code == 2
    assert "1024 to 65535" in result.stderr


def test_an_address_of_a_store_that_makes_no_sense_is_refused_at_once():
    result = invoke("serve", "--no-browser", "--store", "genscope.db")
    assert result.exit_code == 2
    assert "write sqlite:///genscope.db" in result.stderr


def test_it_listens_on_this_machine_only(server):
    # All of 127.0.0.0/8 reaches a server that listens everywhere.
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", server.port), timeout=5).close()


def test_static_files_may_be_kept_and_plotly_is_the_installed_one(server, client):
    page = client.get("/function").text
    addresses = set(re.findall(r'(?:src|href|data-plotly)="(/static/[^"]+)"', page))
    assert len(addresses) == 5
    for address in addresses:
        answer = client.get(address)
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
        assert answer.headers["content-type"].split(";")[0] in ("text/javascript", "text/css", "image/svg+xml")
        assert ("plotly" in address) == (len(answer.content) > 1_000_000)


def test_a_page_that_is_not_there(client):
    answer = client.get("/nowhere")
    assert answer.status_code == 404
    assert "Choose one of its rooms" in answer.text


def load(server, *, clients, seconds):
    """Each client asks for functions of 12 variables, one after the other; how long the answers took."""
    together = threading.Barrier(clients)

    def visit(number):
        took = []
        with entered(server) as client:
            together.wait(60)
            end = time.monotonic() + seconds
            while not took or time.monotonic() < end:
                expression = f"{GALLERY[-1][1]} ^ (x{number % 12} & x{len(took) % 12})"
                start = time.monotonic()
                answer = client.post("/api/function/analyse", json={"expression": expression})
                took.append(time.monotonic() - start)
                assert answer.status_code == 200, answer.text
                assert answer.json()["inputs"] == 4096
        return took

    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        took = [each for found in pool.map(visit, range(clients)) for each in found]
    print(f"{clients} clients, {len(took)} answers, p95 {np.quantile(took, 0.95) * 1000:.0f} ms")
    return took


def test_ten_clients_at_once(server):
    assert len(load(server, clients=10, seconds=3)) >= 10


@pytest.mark.slow
def test_fifty_clients_for_a_minute(server):
    assert len(load(server, clients=50, seconds=60)) >= 500
