"""Case lists as our team writes them: a first line, then lines like ``4x16x32x32 kernel 3 stride 2``."""

from poolproof.suites.cases.case import Case, CaseError
from poolproof.suites.cases.lists.base import NotExpressible
from poolproof.suites.cases.lists.entry import OwnStandard, RowError
from poolproof.suites.cases.lists.lines import Lines

FIRST_LINE = "pools of the example"


class Pools(Lines):
    name = "example-pools"
    suffix = ".pools"

    def recognises(self, text):
        return text.startswith(FIRST_LINE)

    def entries(self, text, label):
        return super().entries(text.replace(FIRST_LINE, "#", 1), label)

    def read(self, row, name):
        shape, *words = row.split()
        try:
            lengths = dict(zip(words[::2], ([int(word)] for word in words[1::2]), strict=True))
            record = {"shape": [int(length) for length in shape.split("x")]}
            record |= {"kernel_size": lengths["kernel"], "stride": lengths["stride"]}
            return Case.from_record({"operator": "MaxPool2dWithIndicesBackward"} | record), OwnStandard(), {}
        except KeyError as error:
            raise RowError(f"{error.args[0]}: it is missing") from error
        except (ValueError, CaseError) as error:
            raise RowError(f"pool: {error}") from error

    def write(self, case, number):
        raise NotExpressible("anything: these lists are only read")


POOLS = Pools()
