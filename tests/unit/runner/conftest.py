from opened_sessions import opened

__all__ = ["opened"]
