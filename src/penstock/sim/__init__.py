"""A plant that is computed."""
