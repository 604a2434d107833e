"""MADE: a masked autoencoder as a joint model, fitted with PyTorch and drawn from without it."""
