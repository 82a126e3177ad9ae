"""Arguments of callers without a type checker: what is no text is refused by name."""

from collections.abc import Iterable

from lakewright.model.errors import Invalid


def text_of(name: str, value: object) -> str:
    """Return a text as it is; ``Invalid`` for anything else."""
    if not isinstance(value, str):
        raise Invalid(
            f"{name}={value!r} is no text but {_kind(value)}.",
            next_step=f"Give a text: {str(value)!r}, say.",
            argument=name,
        )
    return value


def texts_of(name: str, values: Iterable[object]) -> tuple[str, ...]:
    """Return texts as they are; one text alone would be read letter by letter."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise Invalid(
            f"{name}={values!r} is no list of texts.",
            next_step=f"Give a list: [{str(values)!r}].",
            argument=name,
        )
    return tuple(text_of(f"{name}[{number}]", value) for number, value in enumerate(values))


def column_names(columns: object) -> tuple[str, ...] | None:
    """Return the names of the columns that are asked for; None stands for all."""
    if columns is None:
        return None
    if isinstance(columns, str):
        raise Invalid(
            f"columns={columns!r} is one text.", next_step=f"Give a list: columns=[{columns!r}]."
        )
    names: list[str] = []
    for name in columns if isinstance(columns, Iterable) else (columns,):
        if not isinstance(name, str):
            raise Invalid(
                f"columns={columns!r}: {name!r} is no name of a column.",
                next_step="Give a list of names: columns=['id', 'name'].",
            )
        names.append(name)
    return tuple(names)


def _kind(value: object) -> str:
    return f"a value of type {type(value).__name__}"
