"""Commands that look at one table: show, timeline, partitions, files, scan, fsck."""

import sys
from collections.abc import Iterable, Iterator
from typing import Annotated

import pyarrow as pa
import typer

from lakewright.actions.fsck import Problem
from lakewright.actions.tasks.read import ReadTask
from lakewright.interfaces.cli.output import Output, emit, emit_facts, say
from lakewright.interfaces.cli.wiring import Table, open_table
from lakewright.model.errors import Invalid
from lakewright.model.files import FileSlice, PartitionDescriptor

app = typer.Typer(help="Look at one table.", no_args_is_help=True, rich_markup_mode=None)

Path = Annotated[str, typer.Argument(help="The table's path or URI.")]
As = Annotated[Output, typer.Option("--output", "-o", help="The form of the output.")]
Limit = Annotated[int | None, typer.Option(min=0, help="Print at most this many rows.")]
Where = Annotated[str | None, typer.Option(help="Keep rows for which this SQL condition holds.")]
May = Annotated[
    str | None,
    typer.Option("--where", help="Leave out what cannot hold rows for which this SQL is true."),
]
AsOf = Annotated[
    str | None, typer.Option("--as-of", help="An instant, a date or a time: the table as it was.")
]


@app.command()
def show(path: Path, output: As = Output.table) -> None:
    """Show what a table is: type, version, keys, schema, latest instant."""
    table = open_table(path)
    definition = table.definition
    latest = table.timeline.latest_data()
    facts = {
        "name": str(definition.table_id),
        "path": definition.base_path,
        "type": definition.table_type.value,
        "version": definition.version,
        "record key": list(definition.record_key),
        "partitioned by": list(definition.partition_by),
        "ordering": list(definition.ordering),
        "merge mode": definition.merge_mode.value,
        "latest instant": latest.requested if latest else None,
        "schema": {field.name: str(field.type) for field in definition.schema},
    }
    emit_facts(facts, output, title=table.name)


@app.command()
def timeline(
    path: Path,
    output: As = Output.table,
    limit: Limit = None,
    history: Annotated[bool, typer.Option("--history", help="Go on into the archive.")] = False,
) -> None:
    """Show the table's history, newest first."""
    view = open_table(path).timeline
    instants = (view.with_history() if history else view).instants
    rows = (
        {
            "requested": i.requested,
            "completed": i.completed,
            "action": i.action.value,
            "state": i.state.value,
        }
        for i in reversed(instants)
    )
    emit(("requested", "completed", "action", "state"), rows, output, limit=limit)


@app.command()
def partitions(
    path: Path,
    where: May = None,
    as_of: AsOf = None,
    output: As = Output.table,
    limit: Limit = None,
) -> None:
    """Show the partitions that hold live files, now or as of an instant."""
    table = open_table(path)
    found: Iterable[PartitionDescriptor]
    if where is None and as_of is None:
        found = table.partitions()
    else:
        found = {
            task.partition.path: task.partition for task in _read(table, where, as_of)
        }.values()
    rows = ({"partition": p.path, **p.values} for p in found)
    emit(("partition", *table.definition.partition_by), rows, output, limit=limit)


@app.command()
def files(
    path: Path,
    where: May = None,
    as_of: AsOf = None,
    output: As = Output.table,
    limit: Limit = None,
) -> None:
    """Show the live file slices, now or as of an instant."""
    columns = ("partition", "file_id", "base_instant", "base_file", "logs", "bytes")
    table = open_table(path)
    slices: Iterable[FileSlice]
    if where is None:
        slices = (s for snapshot in table.get_snapshot(as_of) for s in snapshot.file_slices)
    else:
        slices = (task.slice for task in _read(table, where, as_of))
    emit(columns, (_slice_row(s) for s in slices), output, limit=limit)


def _read(table: Table, where: str | None, as_of: str | None) -> Iterator[ReadTask]:
    """Stream what a scan would read, pruned as it is for one."""
    tasks = table.scan(where=where, as_of=as_of).plan().tasks
    return (task for task in tasks if isinstance(task, ReadTask))


def _slice_row(file_slice: FileSlice) -> dict[str, object]:
    return {
        "partition": file_slice.group.partition,
        "file_id": file_slice.group.file_id,
        "base_instant": file_slice.base_instant,
        "base_file": file_slice.base.name if file_slice.base else None,
        "logs": [log.name for log in file_slice.logs],
        "bytes": file_slice.size,
    }


@app.command()
def scan(
    path: Path,
    where: Where = None,
    columns: Annotated[
        str | None, typer.Option(help="A comma list of columns; * stands for the table's own.")
    ] = None,
    as_of: AsOf = None,
    mode: Annotated[
        str | None, typer.Option(help="snapshot (unless told otherwise) or read_optimized.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(help="Only rows changed after this instant or time.")
    ] = None,
    until: Annotated[
        str | None, typer.Option(help="With --since: up to this instant or time.")
    ] = None,
    changes: Annotated[
        bool, typer.Option("--changes", help="The change stream instead of the rows.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say what would be read, and read nothing.")
    ] = False,
    limit: Limit = None,
    output: As = Output.table,
) -> None:
    """Read rows: all, some, as of an instant, changed since one, or as a change stream."""
    table = open_table(path)
    names = None if columns is None else _column_list(columns)
    windowed = changes or since is not None or until is not None
    for option, value in (("--as-of", as_of), ("--mode", mode)):
        if windowed and value is not None:
            raise Invalid(
                f"{option} does not go with --since, --until or --changes.",
                next_step="Leave one of them out.",
            )
    if explain and output is not Output.table:
        raise Invalid(
            f"--explain does not go with --output {output}.", next_step="It writes lines of text."
        )
    if changes:
        if where is not None or names is not None:
            raise Invalid(
                "--changes does not go with --where or --columns.", next_step="Leave them out."
            )
        query = table.changes(since, until)
    elif windowed:
        query = table.incremental(since, until, where=where, columns=names)
    else:
        mode = "snapshot" if mode is None else mode
        query = table.scan(where=where, columns=names, as_of=as_of, mode=mode)
    if explain:
        sys.stdout.write(query.explain() + "\n")
        return
    if limit is None and output is Output.table:
        limit = 50  # a terminal is for looking; programs ask for JSON or CSV and get all
    emit(query.schema.names, _rows(query.to_batches()), output, limit=limit)


def _column_list(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise Invalid(
            f"--columns {text!r} leaves out a name.", next_step="Give id,name or '*', or nothing."
        )
    return names


def _rows(batches: Iterator[pa.RecordBatch]) -> Iterator[dict[str, object]]:
    for batch in batches:
        yield from batch.to_pylist(maps_as_pydicts="lossy")


@app.command()
def fsck(
    path: Path,
    deep: Annotated[bool, typer.Option("--deep", help="Read all live data files as well.")] = False,
    output: As = Output.table,
) -> None:
    """Check every invariant of the format; exit code 2 when something is wrong."""
    report = open_table(path).fsck(deep=deep)
    problems, notes = ([_finding(f) for f in found] for found in (report.problems, report.notes))
    checked = dict(report.checked)
    if output is Output.json:
        facts = {"ok": report.ok, "checked": checked, "problems": problems, "notes": notes}
        emit_facts(facts, output, title="fsck")
    elif output is Output.csv:
        emit(("code", "path", "message"), problems, output)
    else:
        emit_facts(checked, output, title="checked")
        for title, found in (("problems", problems), ("notes", notes)):
            if found:
                emit(("code", "path", "message"), found, output, title=title)
        verdict = "sound" if report.ok else f"{len(problems)} problems"
        say(f"{path}: {verdict}, {sum(checked.values())} things checked", good=report.ok)
    if not report.ok:
        raise typer.Exit(2)


def _finding(problem: Problem) -> dict[str, object]:
    return {"code": problem.code, "path": problem.path, "message": problem.message}


#: These verbs also stand directly under ``lakewright``.
TOP_LEVEL = (timeline, partitions, files, scan, fsck)
