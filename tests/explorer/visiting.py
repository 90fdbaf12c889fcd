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
    """A client with the cookie."""
    base = server.address.partition("/?")[0]
    # There is no TLS to verify, and reading certificates takes longer than most tests.
    with httpx.Client(base_url=base, follow_redirects=True, timeout=60, verify=False) as client:
        assert client.get(server.address, follow_redirects=False).status_code == 303
        yield client
