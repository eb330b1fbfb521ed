"""Tasks of an earlier list of KernelBenchX, which its own published records still name.

Two more of that list are TritonBench tasks under a name without `fused_` (see `suites.entries`).
"""

from kerneltruth.tasks.collection import Folder

FOLDER = Folder(__name__, __path__, "earlier", eager="earlier/")
