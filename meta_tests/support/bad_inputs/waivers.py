"""Files that hold no waivers, or waivers that cannot be used."""

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
_WRONG = {
    "id": ('""', "5", '"  "'),
    "reason": ('"\\t"', "[]"),
    "owner": ("{}", "2027-03-31"),
    "expires": ('"2027-03-31"', "2999-01-01", "2027-03-31T00:00:00Z", "2027-02-30", "12:00:00"),
    "scope": ("{}", '"MaxPool2d*"', "{ beauty = '*' }", "{ backend = 5 }", "{ backend = [5] }"),
    "checks": ('"interval"', "[5]", '["beauty"]', '[["interval"]]'),
    "issue": ("5",),
    "versions": ('"2.*"', "{ numpy = 2 }", "{ numpy = { a = 1 } }"),
    **dict.fromkeys(("Id", "until", "checks_violated", '""'), ("1",)),
}
"""For each entry values that it cannot have, and entries that there are not."""


def table(entries: Mapping[str, str]) -> str:
    return "[[waiver]]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())


_LISTED: Mapping[str, str | bytes] = {
    "empty": "",
    "a text": "everything is fine\n",
    "JSON": '{"waiver": []}',
    "an array of nothing": "waiver = []",
    "an array of numbers": "waiver = [1, 2]",
    "a number": "waiver = 5",
    "a table": '[waiver]\nid = "lost"\n',
    "other tables": "[[waivers]]\n" + table(GOOD).partition("\n")[2],
    "a table besides": table(GOOD) + "[other]\nx = 1\n",
    "the same id twice": table(GOOD) * 2,
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
    "a surrogate": '[[waiver]]\nid = "\\uD800"\n',
    "escape sequences": '[[waiver]]\n"\\u001b[2J" = 1\n',
    **{f"{name} is {value}": table({**GOOD, name: value}) for name, values in _WRONG.items() for value in values},
    **{f"no {name}": table({key: GOOD[key] for key in GOOD if key != name}) for name in list(GOOD)[:5]},
}


def listed() -> Iterator[Given]:
    arguments, names = small_session("--waivers=mine.toml"), ("mine.toml", "waiver lost")
    for what, content in _LISTED.items():
        lay = texts({"mine.toml": content})
        yield Given(f"waivers: {what}", "pytest", arguments, names, about="pytest --waivers", lay=lay)
