#!/usr/bin/env python3
"""The one way in: `up`, `serve`, `test` and every other command.

This file stays readable for any Python back to 2.7, so that a wrong one gets a sentence and
not a syntax error. What follows is in ctxhealth/bootstrap, standard library only.
"""

import sys

if sys.version_info < (3, 11):
    sys.stderr.write(
        "ctxhealth needs Python 3.11 or newer and this is Python %d.%d: "
        "start it with a newer one, for example `python3.12 manage.py up`.\n"
        % tuple(sys.version_info[:2])
    )
    sys.exit(2)

if __name__ == "__main__":
    from ctxhealth.bootstrap.main import main

    sys.exit(main(sys.argv[1:]))
