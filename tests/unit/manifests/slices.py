"""What tests ask of slices."""

from itertools import chain

from kubectl_ghost.manifests.slice_updates import slice_updates


def devices_in(slices):
    """Every device of these slices."""
    return list(chain.from_iterable(item["spec"].get("devices") or () for item in slices))


def updated_slice(wanted, live):
    """The live slice with everything that is ours replaced, None if nothing differs."""
    (update,), _ = slice_updates([wanted], [live])
    return update.body if update.differs else None
