"""The child: loads one candidate, calls it as the judge requests, and reports what happened.

Nothing here may import tasks, cases or the oracle.
"""
