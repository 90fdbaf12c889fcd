"""Secrets and their ends, by a clock of our own."""

import pytest

from genscope.explorer.sessions import IDLE_SECONDS, TICKET_SECONDS, Sessions


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def sessions(clock):
    return Sessions(clock)


def test_the_token_opens_again_and_again_and_a_ticket_once(sessions):
    values = [sessions.enter(sessions.token) for _ in range(3)]
    ticket = sessions.ticket()
    values.append(sessions.enter(ticket))
    assert sessions.enter(ticket) is None
    assert len({*values, sessions.token, ticket, sessions.root.strip("/")}) == 7
    assert all(sessions.admit([value]) == value for value in values)


def test_a_ticket_that_nobody_used_ends(sessions, clock):
    early, late = sessions.ticket(), sessions.ticket()
    clock.now += TICKET_SECONDS - 1
    assert sessions.enter(early)
    clock.now += 1
    assert sessions.enter(late) is None


def test_who_asks_nothing_for_long_is_forgotten_and_who_asks_is_not(sessions, clock):
    idle, busy = sessions.enter(sessions.token), sessions.enter(sessions.token)
    for _ in range(4):
        clock.now += IDLE_SECONDS / 2
        assert sessions.admit([busy]) == busy
    assert sessions.admit([idle]) is None
    clock.now += IDLE_SECONDS
    assert sessions.admit([busy]) is None


@pytest.mark.parametrize("wrong", ["", "é", "\udcff", "\0", "x" * 100_000])
def test_other_secrets_open_nothing(sessions, wrong):
    sessions.ticket()
    sessions.enter(sessions.token)
    assert sessions.enter(wrong) is None
    assert sessions.admit([wrong]) is None


def test_values_of_one_start_are_unknown_to_the_next(sessions, clock):
    other = Sessions(clock)
    value = sessions.enter(sessions.token)
    assert other.admit([value, sessions.token]) is None
    assert other.enter(sessions.token) is None
    assert other.root != sessions.root


def test_of_several_values_the_right_one_is_found(sessions):
    value = sessions.enter(sessions.token)
    assert sessions.admit(["tossed", value, ""]) == value
