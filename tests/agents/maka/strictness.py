"""What a runtime host refuses, asked of the fake one and of a real one alike."""

from __future__ import annotations

from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.agents.maka.owner import Owner, Said


def status(url: str, **headers: str) -> int:
    """The HTTP status of a handshake that is refused."""
    try:
        with connect(url, additional_headers=headers, compression=None):
            return 101
    except InvalidStatus as error:
        found: int = error.response.status_code
        return found


def refuses(url: str, credential: str, sessions: list[str]) -> None:
    """``sessions``: 17 that exist. Every assertion holds of epoch 39."""
    bearer = {"Authorization": f"Bearer {credential}"}
    assert status(url, Authorization="Bearer maka_rh_wrong") == 401
    assert status(url, **bearer, Origin="http://127.0.0.1") == 403
    assert status(f"{url}?a=1", **bearer) == 404
    assert _welcome(url, credential, 38)["kind"] == "incompatible"
    assert _welcome(url, credential, 38)["compatibilityEpoch"] == 39
    for operation, fields in (
        ("host.status", {"more": 1}),
        ("no.such.operation", {}),
        ("subscription.open", {"sessionId": sessions[0]}),
        (
            "subscription.open",
            {"sessionId": sessions[0], "transcript": {"kind": "tail", "maxBytes": 1}},
        ),
    ):
        assert _is_cut(url, credential, operation, **fields), operation
    owner = Owner(url, credential)
    for session in sessions[:16]:
        _open(owner, session)
    assert _said(owner, sessions[16]).startswith("operation_conflict")
    owner.close()


def _open(owner: Owner, session: str) -> None:
    transcript = {"kind": "tail", "maxBytes": 1_024}
    owner.ask("subscription.open", sessionId=session, transcript=transcript)


def _said(owner: Owner, session: str) -> str:
    try:
        _open(owner, session)
    except Said as error:
        return str(error)
    return ""


def _welcome(url: str, credential: str, epoch: int) -> dict[str, object]:
    owner = Owner(url, credential, epoch)
    owner.close()
    return owner.welcome


def _is_cut(url: str, credential: str, operation: str, **fields: object) -> bool:
    """Whether the host ends the connection without an answer."""
    owner = Owner(url, credential)
    try:
        owner.ask(operation, 5, **fields)
    except (AssertionError, OSError):
        return owner.gone.wait(5)
    except Said:
        return False
    finally:
        owner.close()
    return False
