"""How to choose: optimisation that knows nothing of streams."""
