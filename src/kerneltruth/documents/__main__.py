"""`python -m kerneltruth.documents [FOLDER]` writes the JSON Schema of every document."""

import sys
from pathlib import Path

from kerneltruth.documents.schema import write

write(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/reference/schema"))
