"""KernelBenchX's 176 tasks, declared in our own words: the tuples of this folder's files."""

from kerneltruth.tasks.collection import Folder

FOLDER = Folder(__name__, __path__, "kernelbenchx", eager="")
