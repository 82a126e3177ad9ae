"""Checks of the timeline: names, states and bodies of all instants, archived ones included."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from lakewright.actions.checks.findings import Findings
from lakewright.format.hudi.history import read_history
from lakewright.format.hudi.instant_names import parse_instant_name
from lakewright.format.hudi.metadata.commit import decode_commit
from lakewright.model.errors import Invalid
from lakewright.model.instant import Action, Instant, State, instant_datetime
from lakewright.table.state import TableState


def check_timeline(state: TableState, findings: Findings) -> None:
    """Check the active timeline: every file name, every state, every body."""
    folder = state.config.timeline_folder
    names = [file.path.removeprefix(f"{folder}/") for file in state.storage.list(folder)]
    named = dict(_instants(names, state, findings))
    _check_twins(state, named, findings)
    _check_reuse(list(named.values()), folder, findings)
    states: dict[tuple[str, Action], set[State]] = {}
    for found in named.values():
        states.setdefault((found.requested, found.action.completes_as), set()).add(found.state)
    for instant in state.timeline.instants:
        findings.checked["instants"] += 1
        _check_times(instant, state, findings)
        there = states.get((instant.requested, instant.action.completes_as), set())
        _check_states(instant, there, folder, findings)
    _check_bodies(state, findings)


def check_history(state: TableState, findings: Findings) -> None:
    """Check that the archived timeline can be read and is in order."""
    folder, last = state.config.history_folder, ""
    with findings.reading("history", folder):
        for past in read_history(state.storage, state.config):
            findings.checked["archived instants"] += 1
            if past.instant.requested < last:
                findings.problem("history-order", folder, f"{past.instant} comes after {last}.")
            last = past.instant.requested
            if past.metadata is not None and past.instant.action.writes_data:
                with findings.reading("archived-body", f"{folder}:{past.instant}"):
                    decode_commit(past.metadata, str(past.instant))


def _instants(
    names: Iterable[str], state: TableState, findings: Findings
) -> Iterator[tuple[str, Instant]]:
    for name in names:
        instant = parse_instant_name(name, state.config.layout)
        if instant is not None:
            yield name, instant
        elif name[:1].isdigit():
            path = f"{state.config.timeline_folder}/{name}"
            findings.problem("instant-name", path, "this is no name of an instant.")


def _check_twins(state: TableState, named: Mapping[str, Instant], findings: Findings) -> None:
    """Check that no action completed twice; doing the same twice over is only noted."""
    completed: dict[tuple[str, Action], list[str]] = {}
    for name, instant in named.items():
        if instant.is_completed:
            completed.setdefault((instant.requested, instant.action), []).append(name)
    for (requested, action), names in completed.items():
        if len(names) == 1:
            continue
        path = f"{state.config.timeline_folder}/{requested}"
        with findings.reading("body", path):
            bodies = [_body(state, name, action) for name in names]
            same = all(body == bodies[0] for body in bodies)
            tell = findings.note if same else findings.problem
            how = "each time the same" if same else "with different bodies"
            tell("completed-twice", path, f"{action} completed {len(names)} times, {how}.")


def _body(state: TableState, name: str, action: Action) -> object:
    path = f"{state.config.timeline_folder}/{name}"
    data = state.storage.read(path)
    return decode_commit(data, path) if action.writes_data else data


def _check_reuse(instants: Sequence[Instant], folder: str, findings: Findings) -> None:
    done = [i for i in instants if i.is_completed]
    kinds = {(i.requested, i.action) for i in done if i.action is not Action.SAVEPOINT}
    for requested, count in Counter(time for time, _ in kinds).items():
        if count > 1:
            findings.problem(
                "instant-reused", f"{folder}/{requested}", f"{count} actions share this time."
            )
    ends = Counter(i.completed for i in done if i.completed != i.requested)
    for completed, count in ends.items():
        if count > 1:
            findings.problem(
                "completion-reused",
                folder,
                f"{count} instants completed at {completed}; completion times are unique.",
            )


def _check_times(instant: Instant, state: TableState, findings: Findings) -> None:
    path = f"{state.config.timeline_folder}/{instant}"
    for moment in (instant.requested, instant.completed):
        if moment is None or not moment.strip("0") or moment.startswith("0000"):
            continue  # pending, or one of the times that Hudi reserves for a table's beginning
        try:
            instant_datetime(moment)
        except Invalid as error:
            findings.problem("instant-time", path, str(error))
    if instant.completed is None or state.config.layout == 1:
        return
    if instant.completed <= instant.requested:
        findings.problem("completed-early", path, "it completed before it was requested.")


#: The files that an action leaves on its way, by how far it has come.
_WAY = {
    State.REQUESTED: {State.REQUESTED},
    State.INFLIGHT: {State.REQUESTED, State.INFLIGHT},
    State.COMPLETED: {State.REQUESTED, State.INFLIGHT, State.COMPLETED},
}


def _check_states(instant: Instant, there: set[State], folder: str, findings: Findings) -> None:
    path = f"{folder}/{instant.requested}"
    if not instant.is_completed:
        findings.note("pending", path, f"the {instant.action} is {instant.state}.")
    missing = _WAY[instant.state] - there
    if instant.action is Action.SAVEPOINT:
        missing -= {State.REQUESTED}
    for state in sorted(missing):
        findings.note("state-missing", path, f"the {state} file of the {instant.action} is gone.")


def _check_bodies(state: TableState, findings: Findings) -> None:
    timeline = state.timeline
    for instant in timeline.instants:
        path = f"{state.config.timeline_folder}/{instant}"
        if instant.is_completed:
            findings.checked["bodies"] += 1
            with findings.reading("body", path):
                timeline.metadata(instant)
        findings.checked["plans"] += 1
        with findings.reading("plan", path):
            timeline.plan(instant)
    requested = {i.requested for i in timeline.data()}
    for savepoint in timeline.by_action(Action.SAVEPOINT):
        if savepoint.is_completed and savepoint.requested not in requested:
            path = f"{state.config.timeline_folder}/{savepoint}"
            findings.problem("savepoint-alone", path, "the commit that it keeps is gone.")
