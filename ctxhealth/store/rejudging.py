"""Stored chats under changed rules: folded again from their logs, where that makes a difference.

A pass takes one chat after another: folded by the rules now in force beside the writer, and only
where something differs written anew by it. A chat that nothing changed in leaves the writer's
memory too, because the state there was folded by the old rules. While a pass is under way, a chat
it has not reached shows the old judgement up to its next event.
"""

from __future__ import annotations

from collections.abc import Callable

from django.db.models import F

from ctxhealth.store import judging, unit
from ctxhealth.store.clock import now_ms
from ctxhealth.store.models import Chat, Judging
from ctxhealth.store.projects import default_project
from ctxhealth.store.through import call, installed
from ctxhealth.store.verify import chat_problems, rebuild

TRIES = 5
Pause = Callable[[float], bool]


def rejudge() -> int:
    """Judge every chat by the present rules, where no server runs; how many changed.

    Raises RuntimeError where a writer runs in this process: it has a ``Rejudger``.
    """
    if installed() is not None:
        raise RuntimeError("the running server judges chats again by itself")
    return run_pass(lambda _: False)


def behind() -> bool:
    """Whether rules changed since the last whole pass."""
    return Judging.objects.filter(judged__lt=F("wanted")).exists()


def run_pass(pause: Pause) -> int:
    """One pass over all chats; how many came out differently.

    ``pause`` is asked after each chat with the seconds it took; True ends the pass, which a later
    one takes up at its cursor (then the result is what changed so far). Rules that change
    meanwhile start it anew.
    """
    wanted = call(_begin)
    while (chat := _next()) is not None:
        begun = now_ms()
        if call(_note, chat, wanted, judge_again(chat)):
            wanted = call(_begin)
            continue
        if pause((now_ms() - begun) / 1_000):
            return Judging.objects.get(project=default_project()).changed
    return call(_end, wanted)


def judge_again(chat: int) -> bool:
    """Judge one chat by the present rules; whether it came out differently."""
    for _ in range(TRIES):
        version = Chat.objects.filter(id=chat).values_list("version", flat=True).first()
        if version is None:
            return False
        try:
            problems, _ = chat_problems(chat)
        except Chat.DoesNotExist:
            return False
        if problems:
            break
        if call(_settled, chat, version):
            return False
    # In the writer's turn, so that the chat cannot move on meanwhile.
    while not call(_rebuilt, chat):
        continue
    return True


def _rebuilt(chat: int) -> bool:
    """False where this very transaction has folded into the chat already: then later."""
    work = unit.current()
    if work is not None and chat in work.changes:
        return False
    rebuild(chat)
    return True


def _settled(chat: int, version: int) -> bool:
    """Forget the state in memory, if the chat is still the one that was compared."""
    if not Chat.objects.filter(id=chat, version=version).exists():
        return False
    work = unit.current()
    if work is not None and chat not in work.changes:
        work.states.drop(chat)
        return True
    return False


def _begin() -> int:
    """A new pass where there is none under way for the rules now in force."""
    project = default_project()
    row, _ = Judging.objects.get_or_create(project=project)
    judging.forget()
    if row.passing != row.wanted:
        row.passing = row.wanted
        row.cursor = row.done = row.changed = 0
        row.started_at, row.finished_at = now_ms(), None
        row.save()
    return row.wanted


def _next() -> int | None:
    row = Judging.objects.get(project=default_project())
    return (
        Chat.objects.filter(id__gt=row.cursor).order_by("id").values_list("id", flat=True).first()
    )


def _note(chat: int, wanted: int, changed: bool) -> bool:
    """Chat done; True where the rules changed meanwhile, and the pass starts over."""
    row = Judging.objects.get(project=default_project())
    row.cursor, row.done = chat, row.done + 1
    row.changed += changed
    row.save()
    return row.wanted != wanted


def _end(wanted: int) -> int:
    row = Judging.objects.get(project=default_project())
    row.judged, row.finished_at = wanted, now_ms()
    row.save()
    return row.changed
