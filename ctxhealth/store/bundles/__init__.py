"""Incidents as files: written here, read again on any other server, with the same page.

A bundle is one JSON document: the chat's log to the end of the range (whole from its first event,
so that it can be folded anew), the incident with notes and verdict, commands and the audit lines
that belong to them. No account, address or token is in it.
"""

from __future__ import annotations

from ctxhealth.store.bundles.bringing import Brought, import_bundle
from ctxhealth.store.bundles.checking import BadBundle, looks_like_bundle
from ctxhealth.store.bundles.packing import TooLarge, bundle_of

__all__ = ["BadBundle", "Brought", "TooLarge", "bundle_of", "import_bundle", "looks_like_bundle"]
