"""The plugin's own modules. They import each other, the client and the engine, nothing else."""
