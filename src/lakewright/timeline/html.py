"""A timeline as a small HTML table, for notebooks."""

import html
from collections.abc import Sequence

from lakewright.model.instant import Instant

#: Longer timelines show their end; the head says how many were left out.
SHOWN = 50


def timeline_html(name: str, instants: Sequence[Instant]) -> str:
    """Render the newest instants, newest first."""
    shown = list(reversed(instants[-SHOWN:]))
    rows = "".join(
        f"<tr><td>{i.requested}</td><td>{i.action}</td><td>{i.state}</td>"
        f"<td>{i.completed or ''}</td></tr>"
        for i in shown
    )
    left_out = len(instants) - len(shown)
    more = f", the last {len(shown)} shown" if left_out else ""
    return (
        f"<table><caption>{html.escape(name)}: {len(instants)} instants{more}</caption>"
        "<thead><tr><th>requested</th><th>action</th><th>state</th><th>completed</th></tr></thead>"
        f"<tbody>{rows}</tbody></table>"
    )
