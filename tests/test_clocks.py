"""Limits count by clocks that a change of the time of day does not touch; files carry no date."""

import re
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "spmilp"
TIME_OF_DAY = re.compile(
    r"\bdatetime\b|\btime\.(time|time_ns|localtime|gmtime|ctime|strftime)\b"
    r"|^from time import .*\b(time|time_ns|localtime|gmtime|ctime|strftime)\b",
    re.MULTILINE,
)


def test_nothing_reads_the_time_of_day() -> None:
    found = {str(path): TIME_OF_DAY.findall(path.read_text()) for path in PACKAGE.rglob("*.py")}
    assert {path for path, names in found.items() if names} == set()
    assert TIME_OF_DAY.search("import os\nfrom time import sleep, time\n")
