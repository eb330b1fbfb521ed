"""Commands: what each one does, from arguments to a document; `cli` only parses and prints."""
