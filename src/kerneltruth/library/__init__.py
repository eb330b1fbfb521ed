"""The library behind `import kerneltruth`: a caller's side without torch, and a server that judges.

caller ── link ── server ── judge ── zygote ...
no torch          torch     one of `workers`
"""
