"""``ctxhealth compact FILE``: the fallback over an exported history, planned or carried out."""

from __future__ import annotations

import json
import sys
from argparse import Namespace

from ctxhealth.cli.errors import UNREACHED, CannotSend
from ctxhealth.cli.exported import Exported, read_exported
from ctxhealth.cli.planned import planned, told_of
from ctxhealth.cli.rewriting import Written, check_output, write_history
from ctxhealth.engine import History, KeepRules, Plan, apply_plan, plan_fallback


def compact(options: Namespace) -> int:
    """Print the plan, and with ``--output`` write the history after it.

    0 where the target is met, 4 where even the last level does not reach it.
    """
    if options.output is not None:
        check_output(options.output, force=options.force)
    given = read_exported(options.file, options.chat, options.scope)
    plan = _plan(given, options)
    written = _write(given.history, plan, options)
    if options.json:
        _say(json.dumps(_as_json(given, plan, written), indent=2) + "\n")
    elif not options.quiet:
        _say(planned(options.file, given.chat, given.history, plan))
        _say(told_of(written) if written else "")
    return UNREACHED if plan.after > plan.target else 0


def _plan(given: Exported, options: Namespace) -> Plan:
    target = given.target if options.target is None else options.target
    if target is None:
        raise CannotSend("Give --target: the file names no limit of its own.")
    try:
        return plan_fallback(
            given.history,
            target=target,
            scope=given.scope,
            rules=KeepRules(turns=options.keep_turns),
        )
    except ValueError as error:
        raise CannotSend(f"{options.file}: {error}. Try --scope history.") from error


def _write(history: History, plan: Plan, options: Namespace) -> Written | None:
    if options.output is None:
        return None
    if not plan.steps and options.output.exists() and options.output.samefile(options.file):
        return None
    return write_history(options.output, apply_plan(history, plan))


def _as_json(given: Exported, plan: Plan, written: Written | None) -> dict[str, object]:
    return {
        "chat": given.chat,
        **plan.to_dict(),
        "written": str(written.path) if written else None,
        "backup": str(written.backup) if written and written.backup else None,
    }


def _say(text: str) -> None:
    sys.stdout.write(text)
