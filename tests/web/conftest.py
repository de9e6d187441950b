"""People in a browser that needs no socket: Django's own client, signed in."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from ctxhealth.store import writes
from ctxhealth.store.people import Role
from tests.live.world import Agent

SignIn = Callable[[Role], Client]


@pytest.fixture
def robot(db: None) -> Agent:
    """A connected agent that can be pressed."""
    return Agent()


@pytest.fixture
def sign_in(db: None) -> SignIn:
    """A client of a person with that role."""

    def client(role: Role) -> Client:
        made = Client()
        made.force_login(writes.user_ensure(username=f"a-{role}", role=role))
        return made

    return client


@pytest.fixture
def operator(sign_in: SignIn) -> Client:
    return sign_in("operator")


@pytest.fixture
def viewer(sign_in: SignIn) -> Client:
    return sign_in("viewer")


@pytest.fixture
def admin(sign_in: SignIn) -> Client:
    return sign_in("admin")
