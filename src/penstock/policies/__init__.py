"""One file per paper, one per peer; guards around them."""
