"""Joint generators: models of whole rows, as alternatives to the chain of conditionals."""
