"""FlashInfer-Bench: definitions as tasks, solutions as submissions, traces as the peer's verdicts.

A data set is a folder with `definitions`, and perhaps `workloads`, `solutions` and `traces`.
"""
