"""What the parts say to each other. Standard library only."""
