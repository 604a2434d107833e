"""Generators: joint models of the mutable features given the fixed ones and the decision. The chain is one."""
