"""ctxhealth in Agent Zero."""
