"""How the world behaves: models fitted from data, frozen once fitted."""
