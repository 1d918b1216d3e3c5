"""Speed, as ratios measured in one run: machines differ, and no test asserts a time."""
