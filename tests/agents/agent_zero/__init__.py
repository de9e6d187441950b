"""The Agent Zero plugin, on a small host of our own and on the real agent."""
