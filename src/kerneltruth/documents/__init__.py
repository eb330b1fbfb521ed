"""Every record, file and `--json` document as a typed model: the only schema.

The models are msgspec Structs; `docs/reference/documents.md` says why. Nothing here knows tasks,
cases or tensors: upper layers make a model from what they have with `model_of`, and read one back
with `parse`.
"""
