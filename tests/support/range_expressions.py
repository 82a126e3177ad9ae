"""Random range rules, and paths whose values lie near their ends."""

from hypothesis import strategies as st

COLUMNS = ["", "", "n: ", "dt:", "level 1: ", "level 2:", "a.b: "]

_WORDS = [
    "a",
    "ab",
    "abc",
    "b",
    "B",
    "z",
    "é",
    "中",
    "😀",
    "_",
    "__HIVE_DEFAULT_PARTITION__",
    "0",
    "1:2",
]
_dates = st.dates().map(str)
_hours = st.builds("{}-{:02}".format, _dates, st.integers(0, 23))
_texts = st.one_of(
    st.sampled_from(_WORDS), st.text("ab:/=%,;é😀 \x1f", min_size=1, max_size=4), _dates
)


@st.composite
def ranges(draw):
    """Return an expression, a strategy of values near its ends, and its two ends."""
    kind = draw(st.sampled_from(["number", "date", "month", "hour", "text"]))
    values = {
        "number": st.one_of(st.integers(-30, 30), st.integers(-(10**6), 10**6)),
        "date": _dates,
        "month": _dates.map(lambda day: day[:7]),
        "hour": _hours,
        "text": _texts,
    }[kind]
    low, high = sorted((draw(values), draw(values)))
    ends = [str(low), str(high)]
    shown = [f'"{end.replace(chr(34), chr(34) * 2)}"' for end in ends] if kind == "text" else ends
    open_end = draw(st.sampled_from([None, None, None, "low", "high"]))
    left = "-inf" if open_end == "low" else shown[0]
    right = "inf" if open_end == "high" else shown[1]
    expression = (
        f"{draw(st.sampled_from(COLUMNS))}{draw(st.sampled_from('[('))}"
        f"{left}, {right}{draw(st.sampled_from('])'))}"
    )
    return expression, _near(kind, values, ends)


def _near(kind: str, values: st.SearchStrategy[object], ends: list[str]) -> st.SearchStrategy[str]:
    """Return values as they stand in paths, often equal to an end or almost so."""
    near = [values.map(str), st.sampled_from(ends), st.sampled_from(["", "-", "x", "00", "-0"])]
    if kind == "number":
        steps = st.sampled_from(ends).flatmap(
            lambda end: st.integers(-2, 2).map(lambda step: str(int(end) + step))
        )
        near += [
            steps,
            steps.map(lambda text: text.replace("-", "-00") if "-" in text else f"0{text}"),
        ]
    elif kind == "text":
        tails = st.builds(
            "{}{}".format, st.sampled_from(ends), st.sampled_from(["", "a", "%", "\0"])
        )
        near += [tails, st.sampled_from(ends).map(lambda end: end[:-1]), tails.map(escaped)]
        near += [values.map(lambda text: escaped(str(text)))]
    else:
        cut = st.sampled_from(ends).map(lambda end: end[:-1])
        near += [st.builds("{}{}".format, cut, st.integers(0, 9))]
        near += [values.map(lambda text: f"{text}-01"), values.map(lambda text: str(text)[:-1])]
    return st.one_of(near)


def escaped(value: str) -> str:
    """Write a value as Hudi writes it into a path where URL encoding is on."""
    return "".join(
        f"%{ord(char):02X}" if char < " " or char in "\"#%'*/:=?[\\]^{\x7f" else char
        for char in value
    )


@st.composite
def paths(draw, value: st.SearchStrategy[str]):
    """Return a partition's path of one to three levels that holds a value."""
    one = draw(value)
    shape = draw(
        st.sampled_from(
            [
                "{}",
                "{}",
                "n={}",
                "dt={}",
                "a.b={}",
                "dt={}/x",
                "x/{}",
                "x=1/n={}",
                "x/dt={}/y=2",
                "axb={}",
            ]
        )
    )
    return shape.format(one)
