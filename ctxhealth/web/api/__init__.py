"""The HTTP API: read what the pages show, press what the pages press, with the same rights."""
