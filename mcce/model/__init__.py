"""Asking the model: whom, with what, and what its answer says about the wanted decision."""
