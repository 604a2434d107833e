import pytest

from tests.samplers.parametric.fixtures import Case


@pytest.fixture
def case(request):
    return Case.read(request.param)
