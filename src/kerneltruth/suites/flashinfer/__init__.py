"""FlashInfer-Bench: definitions are tasks, solutions submissions, traces the peer's verdicts.

A data set is a folder with `definitions`, and perhaps `workloads`, `solutions` and `traces`.
"""
