"""What `make test` runs: nothing slow, and of a sweep a few items that have every trait."""


def in_sample(items):
    """The items that are not slow; of those marked `sampled`, enough to have each trait."""
    seen = set()
    for item in items:
        if item.get_closest_marker("slow"):
            continue
        mark = item.get_closest_marker("sampled")
        if mark is not None:
            function = item.nodeid.partition("[")[0]
            traits = {(function, t) for t in mark.kwargs["by"](**item.callspec.params)}
            if traits <= seen:
                continue
            seen |= traits
        yield item
