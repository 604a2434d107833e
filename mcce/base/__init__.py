"""Shared basics: array types, checks of parameters, compiled kernels, files, progress, threads, figures."""
