"""``ctxhealth replay FILE``: what the core says of a stream, or the stream into a server."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterable

from ctxhealth.cli.console import Console
from ctxhealth.cli.errors import CannotSend
from ctxhealth.cli.player import play
from ctxhealth.cli.streams import Line, read_any


def replay(options: Namespace) -> int:
    """Print the diagnosis, or with ``--url`` play the stream into that server."""
    lines = read_any(options.file)
    if options.url:
        return play(list(lines), options, Console(quiet=options.quiet))
    return tell(lines, options)


def tell(lines: Iterable[Line], options: Namespace) -> int:
    """Fold the lines here and print what is found of every chat."""
    try:
        import msgspec

        from ctxhealth.cli.diagnosis import diagnosis
        from ctxhealth.cli.replayed import Replay
    except ImportError as error:
        raise CannotSend(
            f"The diagnosis needs the server's part of ctxhealth (pip install 'ctxhealth[server]'; "
            f"{error.name} is missing). With --url a server makes it."
        ) from error
    run = Replay()
    for line in lines:
        run.take(line)
    if not run.chats:
        raise CannotSend(f"{options.file} holds no event of a chat.")
    pages = {name: chat.page(run.rules, run.now) for name, chat in run.chats.items()}
    if options.json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(pages)).decode() + "\n")
        return 0
    texts = [
        diagnosis(name, chat.state, pages[name], list(chat.changes.attempts.values()))
        for name, chat in run.chats.items()
    ]
    sys.stdout.write("\n".join(texts))
    for chat in run.chats.values():
        for kind, reason in chat.refused:
            print(f"An event {kind} was refused: {reason}.", file=sys.stderr)
    return 0
