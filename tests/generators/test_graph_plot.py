import itertools

import matplotlib.pyplot as plt
import pytest

from mcce import Graph

LONG = Graph.from_text(
    "age, gender_of_the_applicant -> highest_education_completed -> gross_annual_salary_eur -> loan_amount_requested;"
    "age -> years_in_present_employment -> gross_annual_salary_eur; age <-> gender_of_the_applicant"
)
WIDE = Graph.from_ordering([[f"feature_{i}" for i in range(3)], [f"effect_number_{i}" for i in range(5)]])


@pytest.mark.parametrize("graph", [LONG, WIDE], ids=["long names", "many features"])
def test_names_do_not_overlap_and_fit_400_pixels(graph):
    ax = graph.plot()
    figure = ax.figure
    figure.set_dpi(100)
    figure.draw_without_rendering()
    boxes = [text.get_bbox_patch().get_window_extent() for text in ax.texts if text.get_text()]
    assert figure.bbox.width == 400
    assert len(boxes) == len(graph)
    assert all(box.x0 >= 0 and box.x1 <= 400 and box.y0 >= 0 and box.y1 <= figure.bbox.height for box in boxes)
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
    plt.close(figure)


def test_causes_are_above_effects_and_every_edge_is_drawn():
    _, ax = plt.subplots()
    assert LONG.plot(ax) is ax
    height = {text.get_text().replace("\n", ""): text.get_position()[1] for text in ax.texts if text.get_text()}
    assert all(height[cause] > height[effect] for cause, effect in LONG.edges)
    arrows = [text for text in ax.texts if not text.get_text()]
    assert len(arrows) == len(LONG.edges) + len(LONG.confounded)
    plt.close(ax.figure)


def test_name_is_shortened_after_three_lines():
    ax = Graph([("a", "x" * 400)]).plot()
    shown = max((text.get_text() for text in ax.texts), key=len)
    assert shown.count("\n") == 2
    assert shown.endswith("…")
    plt.close(ax.figure)
