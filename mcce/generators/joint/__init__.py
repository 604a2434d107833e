"""Joint generators: models of whole rows, beside the chain of conditionals."""
