"""Records of decisions that can be verified later: one JSON document per decision, in a chain of hashes.

`Counterfactuals.record` returns a record, `Counterfactuals.write_records` and `mcce explain --records` append records
to a folder, and `verify` or `mcce verify` checks the folder. `schema` is the JSON schema of a record.
"""

from mcce.records.canonical import canonical, hash_of
from mcce.records.record import schema
from mcce.records.verify import Verification, verify

__all__ = ["Verification", "canonical", "hash_of", "schema", "verify"]
