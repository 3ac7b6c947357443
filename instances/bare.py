"""Problems without data: tasks of different length on different cores, chains and random orders."""

from random import Random

from spmilp.machine.machine import Core, CoreKind, Machine, Memory, MemoryKind
from spmilp.problem.problem import Problem, Task


def bare_problems() -> dict[str, Problem]:
    """Return them by name."""
    return {
        "layers-20t-3c": layered(seed=1, layers=5, width=4, cores=3, kinds=1),
        "layers-36t-4c-2kinds": layered(seed=2, layers=6, width=6, cores=4, kinds=2),
        "layers-60t-6c-3kinds": layered(seed=3, layers=6, width=10, cores=6, kinds=3),
    }


def layered(*, seed: int, layers: int, width: int, cores: int, kinds: int) -> Problem:
    """Return layers of tasks, each after one to three of the layer before it.

    A task takes 10 to 99 cycles, on each kind of core another number; one in four cannot run on
    one of the kinds.
    """
    random = Random(seed)
    tasks = []
    for number in range(layers * width):
        layer = number // width
        before = range((layer - 1) * width, layer * width) if layer else range(0)
        after = random.sample(before, random.randint(1, 3)) if before else []
        cycles: list[int | None] = [random.randint(10, 99) for _ in range(kinds)]
        if kinds > 1 and random.random() < 0.25:
            cycles[random.randrange(kinds)] = None
        tasks.append(
            Task(
                index=number,
                name=f"t{layer}_{number % width}",
                cycles=tuple(cycles),
                after=tuple(sorted(after)),
            )
        )
    return Problem(name=f"layers {seed}", machine=_cores(cores, kinds), tasks=tuple(tasks))


def _cores(cores: int, kinds: int) -> Machine:
    return Machine(
        name=f"{cores} cores of {kinds} kinds",
        memories=tuple(
            Memory(index=c, name=f"spm{c}", kind=MemoryKind.SPM, size=1024) for c in range(cores)
        ),
        kinds=tuple(CoreKind(index=k, name=f"kind{k}") for k in range(kinds)),
        cores=tuple(Core(index=c, name=f"core{c}", kind=c % kinds, memory=c) for c in range(cores)),
    )
