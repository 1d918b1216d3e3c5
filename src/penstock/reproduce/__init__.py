"""Each paper's claims: theirs beside ours."""
