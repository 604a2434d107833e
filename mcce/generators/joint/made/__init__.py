"""MADE: a masked autoencoder as a joint model, fitted with PyTorch; drawing does not need PyTorch."""
