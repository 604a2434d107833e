"""Valid files, to be corrupted."""

import pytest

from tests.storage import good


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """Return the bytes of a few valid files by name."""
    folder = tmp_path_factory.mktemp("good")
    for name in ("cart", "rpart", "copula", "marginal", "coefficients", "empirical", "boosting", "mixture"):
        good.chain(name).save(folder / f"{name}.mcce")
    good.explainer().save(folder / "explainer.mcce")
    return {path.stem: path.read_bytes() for path in folder.iterdir()}
