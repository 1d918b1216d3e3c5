"""Commands: parsing, progress bars, exit codes; no logic."""
