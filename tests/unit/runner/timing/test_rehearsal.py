"""What a device loads before a candidate is there."""

import gc

from kerneltruth.runner.timing.rehearsal import rehearse
from kerneltruth.runner.timing.timed_worker import TimedWorker


def test_batches_can_be_rehearsed_before_anything_is_loaded():
    batches = []

    class Counted(TimedWorker):
        def batch(self, request):
            batches.append(request)
            return super().batch(request)

    rehearse("cpu", Counted)
    assert batches
    # It leaves nothing behind.
    gc.collect()
    assert not [each for each in gc.get_objects() if type(each) is Counted]
