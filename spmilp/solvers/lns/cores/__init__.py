"""Tasks that change cores, with the operands that lie in the scratchpads for them."""
