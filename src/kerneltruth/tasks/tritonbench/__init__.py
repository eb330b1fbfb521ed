"""TritonBench-T's tasks that KernelBenchX has not, or not alike: 17 of its 166 entries.

The other entries are KernelBenchX's tasks under the same or nearly the same name, but for two that
are no kernels (see `suites.entries`).
"""

from kerneltruth.tasks.collection import Folder

FOLDER = Folder(__name__, __path__, "tritonbench", eager="tritonbench/")
