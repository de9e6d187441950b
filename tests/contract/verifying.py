"""Verify a data folder in a process of its own: `python -m tests.contract.verifying`."""

from __future__ import annotations

import sys

import django


def main() -> int:
    django.setup()
    from ctxhealth.store.verify import verify

    report = verify()
    for problem in report.problems:
        print(f"{problem.where}: {problem.what}")
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main())
