"""What a path below a storage's root may look like, the same rules for every storage."""

from lakewright.model.errors import AlreadyExists, Invalid, InvalidPath, NotFound

TEMPORARY_SUFFIX = ".lakewright-tmp"
"""The end of the names of files that are being written; listings leave such files out."""


def check_path(path: str) -> str:
    """Return ``path`` unchanged when it is a plain relative path; ``""`` is the root.

    Names may hold any character but ``/`` and NUL. Empty names, ``.`` and ``..`` are refused
    rather than folded away: a caller that builds them has a bug, or an attacker behind it.
    """
    if not path:
        return path
    if "\0" in path:
        raise _invalid(path, "holds a NUL character")
    if path[0] == "/":
        raise _invalid(path, "is absolute")
    for name in path.split("/"):
        if not name:
            raise _invalid(path, "holds an empty name")
        if name in {".", ".."}:
            raise _invalid(path, f"holds {name!r}")
    return path


def check_file(path: str) -> str:
    """Return ``path`` unchanged when it can name a file: a plain relative path, not the root."""
    if not path:
        raise _invalid(path, "names the root, where a file is needed")
    return check_path(path)


def check_range(offset: int, length: int) -> None:
    """Refuse a range that starts before the file or has a negative length."""
    if offset < 0 or length < 0:
        raise Invalid(
            f"A range of {length} bytes from {offset} is no range.",
            next_step="Give an offset and a length of 0 or more.",
            offset=offset,
            length=length,
        )


def join(folder: str, name: str) -> str:
    """Return the path of ``name`` inside ``folder``, either of which may be empty."""
    return f"{folder}/{name}" if folder and name else folder or name


def split(path: str) -> tuple[str, str]:
    """Return the folder (``""`` for the root) and the name of a path."""
    folder, _, name = path.rpartition("/")
    return folder, name


def not_found(path: str, uri: str) -> NotFound:
    """Return the error for a file that is not there."""
    return NotFound(
        f"There is no file {path!r} in {uri}.",
        next_step="Look at the folder for what there is.",
        path=path,
        uri=uri,
    )


def already_exists(path: str, uri: str) -> AlreadyExists:
    """Return the error for a file that is there already."""
    return AlreadyExists(
        f"There is already a file {path!r} in {uri}.",
        next_step="Choose another name, or delete the file first.",
        path=path,
        uri=uri,
    )


def escapes(path: str, target: str, uri: str) -> InvalidPath:
    """Return the error for a symbolic link that leads out of the root."""
    return InvalidPath(
        f"The path {path!r} leads out of {uri}, to {target!r}.",
        next_step="Remove the symbolic link, or open the folder that it points to.",
        path=path,
        target=target,
        uri=uri,
    )


def _invalid(path: str, why: str) -> InvalidPath:
    return InvalidPath(
        f"The path {path!r} {why}.",
        next_step="Give names below the root, joined by '/', without '.' and '..'.",
        path=path,
    )
