"""The two colours of the plots differ for colour-blind readers and in grey."""

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from mcce.base.canvas import DARK, LIGHT

# Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB
SEEN = {
    "all": np.eye(3),
    "without red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "without green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "without blue": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def luminance(colour, matrix):
    srgb = np.array(to_rgb(colour))
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    return float(np.clip(np.asarray(matrix) @ linear, 0, 1) @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("matrix", SEEN.values(), ids=SEEN)
def test_two_colours_are_distinguishable_with_colour_blindness_and_in_grey(matrix):
    dark, light = luminance(DARK, matrix), luminance(LIGHT, matrix)
    assert (light + 0.05) / (dark + 0.05) > 3  # the requirement of WCAG 2.1 (1.4.11) for graphical objects
