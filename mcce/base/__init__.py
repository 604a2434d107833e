"""The ground under all modules: arrays, checks of parameters, compiled kernels, files, progress, threads, figures."""
