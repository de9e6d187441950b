"""Pages that follow the store: hints out of the writer, fragments into open browsers.

The database is the truth. A hint says only "this chat changed" and may be lost; the resync tick
finds what was lost. Nothing in this room knows of agents' sockets.
"""
