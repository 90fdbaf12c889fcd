"""A server in a thread, and a client that has entered."""

import contextlib
import threading

import httpx

from genscope.explorer.server import Server


@contextlib.contextmanager
def running(store, **options):
    """A server in a thread of its own."""
    server = Server(store, **options)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join(30)
        assert not thread.is_alive()


@contextlib.contextmanager
def entered(server):
    """A client with the cookie, whose addresses begin with the private path."""
    base = server.address.partition("/?")[0]
    # There is no TLS to verify, and reading certificates takes longer than most tests.
    with httpx.Client(base_url=base, follow_redirects=True, timeout=60, verify=False) as client:
        answer = client.get(server.address, follow_redirects=False)
        assert answer.status_code == 303
        client.base_url = base + answer.headers["location"]
        yield client


def cookie_of(client):
    """The cookie that a client has, as a header holds it."""
    return "; ".join(f"{name}={value}" for name, value in client.cookies.items())
