"""Integrations with agent products: a provider and a server of our own, and the products."""
