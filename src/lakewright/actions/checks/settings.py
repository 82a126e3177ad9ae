"""Checks of a table's properties."""

from lakewright.actions.checks.findings import Findings
from lakewright.format.hudi.properties import (
    BACKUP_PATH,
    CHECKSUM,
    PROPERTIES_PATH,
    parse_properties,
    table_checksum,
)
from lakewright.model.schema import Struct
from lakewright.table.state import TableState, table_schema


def check_settings(state: TableState, findings: Findings) -> None:
    """Check the properties file, and that the columns it names exist."""
    with findings.reading("properties", PROPERTIES_PATH):
        values = parse_properties(state.storage.read(PROPERTIES_PATH))
        findings.checked["properties"] += len(values)
        if CHECKSUM not in values:
            findings.note("no-checksum", PROPERTIES_PATH, "there is no checksum.")
        elif values[CHECKSUM] != str(table_checksum(values)):
            findings.problem(
                "checksum", PROPERTIES_PATH, f"{CHECKSUM} does not match the table's names."
            )
    if state.storage.stat(BACKUP_PATH) is not None:
        findings.note("backup", BACKUP_PATH, "a change of the properties was not finished.")
    if state.timeline.latest_data() is not None:
        with findings.reading("schema", PROPERTIES_PATH):
            _check_columns(state, table_schema(state), findings)


def _check_columns(state: TableState, schema: Struct, findings: Findings) -> None:
    config = state.config
    roles = {
        "record key": config.record_key,
        "partition": tuple(field.name for field in config.partition_fields),
        "ordering": config.ordering,
    }
    for role, names in roles.items():
        for name in names:
            findings.checked["named columns"] += 1
            if name.partition(".")[0] not in schema and name not in schema:
                findings.problem(
                    "unknown-column", PROPERTIES_PATH, f"the {role} column {name!r} does not exist."
                )
