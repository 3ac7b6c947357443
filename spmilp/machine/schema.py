"""The JSON Schema of machine files; ``python -m spmilp.machine.schema`` writes it anew."""

import json
from pathlib import Path

from spmilp.files import write_atomically
from spmilp.machine.description import MachineDescription

PUBLISHED = Path(__file__).with_name("machine.schema.json")


def machine_schema() -> str:
    """Return the JSON Schema of the YAML format as text."""
    schema = MachineDescription.model_json_schema()
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "spmilp machine"
    return json.dumps(schema, indent=2, sort_keys=True) + "\n"


if __name__ == "__main__":
    write_atomically(PUBLISHED, machine_schema())
