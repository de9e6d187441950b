"""The durable spine: models, the one writer, services that write and selectors that read."""
