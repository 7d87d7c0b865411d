"""What Python code finds when it imports the package."""

import pytest

import hwmodel
from hwmodel import NameUnknown, compare


def test_one_name_may_stand_for_a_list_of_one():
    """A string is a sequence of strings, too; none of its letters is a chip."""
    several = list(compare("vgg-small-1fc", ["v100"], ["bold"], accounting=["paper"]))
    assert list(compare("vgg-small-1fc", "v100", "bold")) == several
    with pytest.raises(NameUnknown, match="no hardware is called 'v10': did you mean 'v100'"):
        compare("vgg-small-1fc", "v10", "bold")


def test_public_names_are_listed_before_they_are_loaded():
    assert {*hwmodel.__all__} <= {*dir(hwmodel)}
