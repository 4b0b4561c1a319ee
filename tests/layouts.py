"""MIG layouts as the tests ask for them."""

from kubectl_ghost.domain.errors import InputError
from kubectl_ghost.domain.mig import MigInstance
from kubectl_ghost.domain.mig_placement import check_layout


def is_maximal(table, layout):
    """Whether no further instance of any profile fits beside these."""
    places = (MigInstance(profile.name, start) for profile in table.profiles for start in profile.starts)
    return not any(_fits(table, [*layout, place]) for place in places)


def _fits(table, layout):
    try:
        check_layout(table, layout)
    except InputError:
        return False
    return True
