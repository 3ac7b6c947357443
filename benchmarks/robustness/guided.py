"""One reader, fuzzed by atheris: what reaches new code is changed further.

Started by ``benchmarks.robustness.fuzz``, in a process of its own: libFuzzer ends it. What is
instrumented are this project and the reader of YAML. Half of the changes are libFuzzer's, a quarter
those of ``changes``, and a quarter of the cases are changed files of this repository, as without
guidance. The log says how much code was reached.
"""

import os
import random
import sys
from hashlib import sha256
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["spmilp", "yaml"]):
    from benchmarks.robustness.changes import changed
    from benchmarks.robustness.fuzz import LARGEST_SEED, LONGEST_CASE, Trials


def main() -> None:
    """Try one reader until its time is over."""
    name, made, folder, seconds, seed = sys.argv[1:]
    trials = Trials(name, Path(made), Path(folder), float(seconds))
    corpus = Path(folder) / f"{name}-corpus"
    corpus.mkdir(exist_ok=True)
    beginnings = trials.begin()
    for data in beginnings:
        (corpus / sha256(data).hexdigest()).write_bytes(data)

    def one(data: bytes) -> None:
        if trials.over():
            os._exit(0)
        trials.one(data)

    def changed_file(data: bytes, most: int, number: int) -> bytes:
        choose = random.Random(number)
        if choose.random() < 0.5:
            return bytes(atheris.Mutate(data, most))
        known = data if choose.random() < 0.5 else choose.choice(beginnings)
        return changed(known, beginnings, choose)[:most]

    options = [
        *(f"-max_len={LARGEST_SEED}", f"-timeout={3 * LONGEST_CASE}", f"-seed={seed}"),
        *("-rss_limit_mb=0", f"-artifact_prefix={made}/"),
    ]
    atheris.Setup([sys.argv[0], str(corpus), *options], one, custom_mutator=changed_file)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
