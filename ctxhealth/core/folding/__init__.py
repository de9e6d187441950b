"""What each event does to the state: one module per concept, one function per event type.

Every function has the signature ``(state, event, context)``, changes the state in place in time
that does not depend on the chat's length, and raises nothing for any decodable event.
"""

from __future__ import annotations
