"""Says whether a document is valid against a JSON Schema, with the Python validator.

    python validate.py SCHEMA DOCUMENT
"""

import json
import sys

from jsonschema import Draft202012Validator

schema, document = (json.load(open(path)) for path in sys.argv[1:])
Draft202012Validator.check_schema(schema)
print("valid" if Draft202012Validator(schema).is_valid(document) else "invalid")
