"""What every module may use: arrays, checks of parameters, compiled kernels, files, progress, threads, figures."""
