"""Files without pickle: fitted objects as JSON and arrays in a zip, validated when they are read."""

from mcce.storage.archive import load_fields, read_manifest, save_fields

__all__ = ["load_fields", "read_manifest", "save_fields"]
