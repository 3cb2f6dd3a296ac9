"""Case lists as our team writes them: a first line, then lines like ``4x16x32x32 kernel 3 stride 2``."""

from poolproof.suites.cases.case import Case, CaseError
from poolproof.suites.cases.entry import OwnStandard
from poolproof.suites.cases.lists.base import NotExpressible
from poolproof.suites.cases.lists.fields import RowError
from poolproof.suites.cases.lists.lines import Lines

FIRST_LINE = "pools of the example"
OPERATOR = "MaxPool2dWithIndicesBackward"


class Pools(Lines):
    name = "example-pools"

    def recognises(self, text):
        return text.startswith(FIRST_LINE)

    def entries(self, text, label):
        return super().entries(text.replace(FIRST_LINE, "#", 1), label)

    def read(self, row, name):
        shape, *words = row.split()
        try:
            lengths = dict(zip(words[::2], map(numbers, words[1::2]), strict=True))
            record = {"shape": numbers(shape), "kernel_size": lengths["kernel"], "stride": lengths["stride"]}
            return Case.from_record({"operator": OPERATOR} | record), OwnStandard()
        except KeyError as error:
            raise RowError(f"{error.args[0]}: it is missing") from error
        except (ValueError, CaseError) as error:
            raise RowError(f"pool: {error}") from error

    def write(self, case, number):
        if case.operator != OPERATOR:
            raise NotExpressible(f"other operators than {OPERATOR}")
        windows = case.attributes
        row = f"{text(case.shape)} kernel {text(windows.kernel_size)} stride {text(windows.stride or (1,))}"
        if self.read(row, "")[0] != case:
            raise NotExpressible("what is neither shape, kernel nor stride")
        return row

    def document(self, rows):
        return f"{FIRST_LINE}\n{super().document(rows)}"


def numbers(word):
    return [int(number) for number in word.split("x")]


def text(lengths):
    return "x".join(map(str, lengths))


POOLS = Pools()
