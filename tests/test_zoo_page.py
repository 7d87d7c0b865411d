"""The page of bundled networks is what its function makes."""

from hwmodel.graph.network import zoo
from hwmodel.views.zoo import zoo_page
from tests.test_architecture import PACKAGE


def test_the_page_of_networks_is_made_of_the_zoo():
    """If it is not: python -c 'print(hwmodel.views.zoo.zoo_page(), end="")' > docs/zoo.md."""
    page = (PACKAGE.parent / "docs" / "zoo.md").read_text(encoding="utf-8")
    assert page == zoo_page()
    for name in zoo():
        assert page.count(f"| `{name}` |") == 1
