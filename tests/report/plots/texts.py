"""Texts of a plot: inside the figure, without overlap, legible on a phone."""

from __future__ import annotations

import itertools

from matplotlib.axes import Axes


def visible_texts(ax: Axes):
    texts = [*ax.texts, ax.xaxis.label, ax.yaxis.label, ax._left_title]
    for axis in (ax.xaxis, ax.yaxis):
        low, high = sorted(axis.get_view_interval())
        texts += [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    legend = ax.get_legend()
    texts += [*legend.get_texts(), legend.get_title()] if legend is not None else []
    return [t for t in texts if t.get_text() and t.get_visible()]


def assert_texts_fit(*axes: Axes) -> None:
    figure = axes[0].figure
    figure.draw_without_rendering()
    texts = [text for ax in axes for text in visible_texts(ax)]
    for legend in figure.legends:
        texts += [*legend.get_texts(), legend.get_title()]
    boxes = [(t.get_text(), t.get_window_extent()) for t in texts]
    for text, box in boxes:
        assert box.x0 >= figure.bbox.x0 - 1, text
        assert box.x1 <= figure.bbox.x1 + 1, text
        assert box.y0 >= figure.bbox.y0 - 1, text
        assert box.y1 <= figure.bbox.y1 + 1, text
    for (text, box), (other, other_box) in itertools.combinations(boxes, 2):
        width = min(box.x1, other_box.x1) - max(box.x0, other_box.x0)
        height = min(box.y1, other_box.y1) - max(box.y0, other_box.y0)
        assert width <= 1 or height <= 1, f"{text!r} overlaps {other!r}"


def assert_legible(*axes: Axes) -> None:
    """Check that every letter is at least 7 pixels high if the figure is 400 pixels wide."""
    pixels_a_point = 400 / axes[0].figure.get_figwidth() / 72
    for text in (text for ax in axes for text in visible_texts(ax)):
        assert text.get_fontsize() * pixels_a_point >= 7, text.get_text()
