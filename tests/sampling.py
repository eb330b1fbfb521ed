"""Which items of a sweep `make test` runs: a few that have every trait of all of them."""


def in_sample(items):
    """The items of a sample: of those marked `sampled`, enough to have each of their traits."""
    seen = set()
    for item in items:
        mark = item.get_closest_marker("sampled")
        if mark is not None:
            function = item.nodeid.partition("[")[0]
            traits = {(function, t) for t in mark.kwargs["by"](**item.callspec.params)}
            if traits <= seen:
                continue
            seen |= traits
        yield item
