"""Querying the model: which of its methods, with which frame, and what its answer means for the wanted decision."""
