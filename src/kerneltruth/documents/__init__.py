"""Every record, file and `--json` document as a typed model: the only schema.

The models are msgspec Structs. pydantic was the alternative; msgspec imports in about a tenth of
its time (which every command pays), is strict about types and unknown keys without settings, and
writes JSON Schema as well. Nothing here knows tasks, cases or tensors: upper layers make a model
from what they have with `model_of`, and read one back with `parse`.
"""
