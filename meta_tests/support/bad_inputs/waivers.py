"""Files that hold no waivers, or waivers that cannot be used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bad_inputs import Given, small_session
from bad_inputs.materials import texts

GOOD = {
    "id": '"lost"',
    "reason": '"known"',
    "owner": '"us"',
    "expires": "2027-03-31",
    "scope": '{ backend = "scatter_backends:*", operator = "MaxPool2d*" }',
    "checks": '["interval"]',
    "issue": '"somewhere"',
    "versions": '{ numpy = "2.*" }',
}

_WRONG: Mapping[str, tuple[str, ...]] = {
    "id": ('""', "5", "true", "[]", '"  "', "{}"),
    "reason": ('""', "5", "[]", '"\\t"', "1.5"),
    "owner": ('""', "5", "{}", "2027-03-31"),
    "expires": ('"2027-03-31"', "2999-01-01", "2027-03-31T00:00:00Z", "5", "true", "2027-02-30", "12:00:00", "[]"),
    "scope": ("{}", "5", '"MaxPool2d*"', "{ beauty = '*' }", "{ backend = 5 }", "{ backend = [5] }", "[]", "true"),
    "checks": ('"interval"', "[5]", '["beauty"]', "5", "{}", '[["interval"]]', "true"),
    "issue": ("5", "[]", "{}", "true"),
    "versions": ("5", '"2.*"', "{ numpy = 2 }", "[]", "{ numpy = { a = 1 } }"),
}
"""For each entry values that it cannot have."""


def table(entries: Mapping[str, str]) -> str:
    return "[[waiver]]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())


_TWICE = table(GOOD) * 2

LISTED: Mapping[str, str | bytes] = {
    "empty": "",
    "blanks": " \n\n",
    "a comment": "# nothing is accepted\n",
    "a text": "everything is fine\n",
    "JSON": '{"waiver": []}',
    "an array of nothing": "waiver = []",
    "an array of numbers": "waiver = [1, 2]",
    "an array of texts": 'waiver = ["all"]',
    "a number": "waiver = 5",
    "a table": '[waiver]\nid = "lost"\n',
    "other tables": "[[waivers]]\n" + table(GOOD).partition("\n")[2],
    "a table besides": table(GOOD) + "[other]\nx = 1\n",
    "the same id twice": _TWICE,
    "an entry twice": table(GOOD) + 'id = "again"\n',
    "binary": bytes(range(256)),
    "UTF-16": table(GOOD).encode("utf-16"),
    "Latin-1": table({**GOOD, "owner": '"Jürgen"'}).encode("latin-1"),
    "a byte order mark": b"\xef\xbb\xbf" + table(GOOD).encode(),
    "null characters": "\0" * 100,
    "arrays nested deeply": "waiver = " + "[" * 5000 + "]" * 5000,
    "tables nested deeply": "[" + ".".join("a" * 5000) + "]\nx = 1\n",
    "a number of many digits": "waiver = " + "9" * 6000,
    "a text without an end": '[[waiver]]\nid = "lost\n',
    "a date of no calendar": "[[waiver]]\nexpires = 2027-99-99\n",
    "a surrogate": '[[waiver]]\nid = "\\uD800"\n',
    "escape sequences": '[[waiver]]\n"\\u001b[2J" = 1\n',
}


def listed() -> Iterator[Given]:
    for what, content in LISTED.items():
        yield _given(f"waivers: {what}", content)
    for name, values in _WRONG.items():
        for value in values:
            yield _given(f"waivers: {name} is {value}", table({**GOOD, name: value}))
    for name in ("id", "reason", "owner", "expires", "scope"):
        yield _given(f"waivers: no {name}", table({key: value for key, value in GOOD.items() if key != name}))
    for name in ("Id", "until", "checks_violated", '""'):
        yield _given(f"waivers: {name} besides", table({**GOOD, name: "1"}))


def _given(name: str, content: str | bytes) -> Given:
    arguments = small_session("--waivers=mine.toml")
    return Given(
        name,
        "pytest",
        arguments,
        ("mine.toml", "waiver lost"),
        about="pytest --waivers",
        lay=texts({"mine.toml": content}),
    )
