"""Sources in C: templates with marks, rows of numbers, and a program around a plan."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files

from spmilp.commands.commands import EventScheme
from spmilp.export import codes
from spmilp.export.actions import Actions
from spmilp.export.codes import Direction
from spmilp.export.names import comment, numbered
from spmilp.export.subject import TOOL, Subject, Title

TITLE: Title = ("spmilp-c", "2.0")

PLAYER: Title = ("spmilp-player", "2.0")
"""Format of the sources that are the same for every plan."""

LARGEST_IMAGE_IN_C = 4 << 20
"""Bytes of constants that are written as an array of C too; compilers take long over more."""

LEAST_INPUTS = 5
"""Entries that a C array of inputs has at least: some kernels look at so many without counting."""

SECTION = "SPMILP_TABLE"


def filled(name: str, marks: Mapping[str, object]) -> str:
    """Return a template with what stands for its marks; that is not searched for marks again."""
    text = files("spmilp.export").joinpath("templates", name).read_text("utf-8")
    return re.sub(r"@([A-Z_]+)@", lambda mark: str(marks[mark[1]]), text)


def sources_of_all_plans(*folders: str) -> dict[str, bytes]:
    """Return sources that are the same for every plan, by name, with format and tool above them."""
    above = f"/*\n * format: {' '.join(PLAYER)}\n * tool: {TOOL}\n */\n\n"
    found = {}
    for folder in folders:
        for file in files("spmilp.export").joinpath("c", folder).iterdir():
            if file.is_file():
                is_c = file.name.endswith((".c", ".h"))
                found[file.name] = (above if is_c else "").encode() + file.read_bytes()
    return dict(sorted(found.items()))


def _types_header() -> bytes:
    """Return ``spmilp_types.h``: codes and tables, the same for every plan of a version."""
    marks = {"FORMAT": " ".join(TITLE), "TOOL": TOOL, "CODES": "\n".join(_codes())}
    return filled("types.h", marks).encode()


def _codes() -> Iterator[str]:
    for prefix, what, names in (
        ("SCHEME", "What a wait does", _numbered(EventScheme.__members__)),
        ("PORT", "Sides of the network", codes.Direction.__members__),
        ("TYPE", "Types of elements (ONNX TensorProto.DataType)", codes.Elements.__members__),
        ("PART", "Parts of a reduction", codes.Part.__members__),
        ("LIMIT", "Limits of results: bits", codes.Bound.__members__),
        ("VALUE", "What the words of an attribute are", codes.AttributeType.__members__),
        ("OPERATOR", "ONNX operator types", codes.OPERATOR_CODES),
        ("ATTRIBUTE", "Attributes", _numbered(codes.ATTRIBUTES)),
    ):
        yield f"/* {what}. */"
        yield from (
            f"#define SPMILP_{prefix}_{name.upper()} {number}U" for name, number in names.items()
        )
        yield ""


def _numbered(names: Iterable[str]) -> dict[str, int]:
    return {name: number for number, name in enumerate(names)}


def stamp(subject: Subject, title: Title, *, has_values: bool = False) -> str:
    """Return the origin as lines of a comment; of a file with values it names the model's hash."""
    return "\n".join(f" * {line}" for line in subject.head(title, has_values=has_values))


def _rows(values: Sequence[Sequence[int]], columns: int) -> str:
    """Return rows of unsigned constants; C has no empty arrays, so of none a row of 0."""
    if not values:
        return f"    {{{', '.join(['0U'] * columns)}}}"
    return "\n".join(f"    {{{', '.join(map(_literal, row))}}}," for row in values)


def _literal(value: int) -> str:
    """Return an unsigned constant, whatever the size of ``int``."""
    return f"UINT64_C({value})" if value >= 2**32 else f"{value}U"


def numbers(values: Sequence[int], per_line: int = 20) -> str:
    """Return signed constants; one 0 if there are none."""
    texts = ["(-2147483647 - 1)" if value == -(2**31) else str(value) for value in values or [0]]
    starts = range(0, len(texts), per_line)
    return "\n".join(f"    {', '.join(texts[first : first + per_line])}," for first in starts)


def _is_in_c(image: bytes) -> bool:
    """Say whether the constants' bytes are written as an array of C too."""
    return len(image) <= LARGEST_IMAGE_IN_C


def files_beside(actions: Actions, marks: Mapping[str, object]) -> dict[str, bytes]:
    """Return what stands beside bits or code: types, and the image (in C too if it is small)."""
    prefix, image = actions.subject.prefix, actions.places.image
    found = {"spmilp_types.h": _types_header(), f"{prefix}_image.bin": image}
    if _is_in_c(image):
        more = {
            "STAMP": stamp(actions.subject, TITLE, has_values=True),
            "IMAGE_ROOM": max(1, len(image)),
            "BYTES": numbers(image),
        }
        found[f"{prefix}_image.c"] = filled("image.c", {**marks, **more}).encode()
    return found


def memory_macros(subject: Subject) -> list[str]:
    """Return for each memory the macro of straight code that is its base address."""
    memories = subject.problem.machine.memories
    start = f"{subject.prefix}_M"
    return [numbered(start, memory.index, memory.name).upper() for memory in memories]


def marks_of(actions: Actions, kind: str, title: Title) -> dict[str, object]:
    """Return the marks of what a program keeps besides code or bits, which are its ``kind``.

    All calls must have been made.
    """
    subject, places = actions.subject, actions.places
    prefix, machine, lists = subject.prefix, subject.problem.machine, subject.lists
    summary = (
        *(subject.plan.claim.makespan, actions.largest_workspace, machine.frequency or 0),
        *(lists.events, list(EventScheme).index(lists.scheme)),
    )
    ports = [row for each in actions.rounds for row in each.ports()]
    ports += actions.ports_of_states()
    segments = [(*segment, 0) for segment in places.on_chip]
    words, texts = actions.words.values, actions.texts.values
    name, image = f"{prefix}_{kind}", f"{prefix}_plan_image"
    if not _is_in_c(places.image):
        image = f"_binary_{prefix}_image_bin_start"
    sizes = (
        f"#define {name.upper()}_MEMORY{memory.index}_USED_BYTES UINT64_C({used}) "
        f"/* {comment(memory.name)} */"
        for memory, used in zip(machine.memories, places.used, strict=True)
    )
    marks: dict[str, object] = {
        "STAMP": stamp(subject, title),
        "NAME": name,
        "UPPER": name.upper(),
        "LISTS": len(lists.lists),
        "EVENTS": lists.events,
        "RUNNING": max(1, len(subject.running_cores)),
        "MEMORY_SIZES": "\n".join(sizes),
        "SUMMARY": _rows([summary], 5),
        "PORTS": _rows(ports, 10),
        "PORTS_COUNT": len(ports),
        "PORTS_ROOM": max(1, len(ports)),
        "LARGEST_PORT": max((row[1] for row in ports), default=1),
        "SEGMENTS": _rows(segments, 5),
        "SEGMENTS_COUNT": len(segments),
        "SEGMENTS_ROOM": max(1, len(segments)),
        "WORDS": numbers(words, 12),
        "WORDS_COUNT": len(words),
        "WORDS_ROOM": max(1, len(words)),
        "TEXTS": numbers(texts),
        "TEXTS_COUNT": len(texts),
        "IMAGE": image,
        "IMAGE_COUNT": len(places.image),
    }
    return marks | {f"KEPT_{end}": filled(f"kept.{end.lower()}", marks) for end in "HC"}


def words_of_a_list(subject: Subject) -> int:
    """Return how many words of RAM say where a list of packed bits is."""
    return 3 if subject.loop is None else 4


def program_files(
    actions: Actions, marks: Mapping[str, object], kind: str, plan: Sequence[str], inputs: int
) -> dict[str, bytes]:
    """Return sources, makefile and linker script of a program that runs packed bits, or code.

    The kind is ``plan`` for bits, ``code`` for straight code. The sources of the ``plan``, which
    say what is to run, are not among the files, nor is the image. A call has at most ``inputs``.
    """
    subject, image = actions.subject, f"{actions.subject.prefix}_image"
    cores, name = subject.lists.cores, marks["NAME"]
    running = subject.running_cores
    # Cores that never run get the first workspace.
    workspaces = [running.index(one.core) if one.core in running else 0 for one in cores]
    folders, program, makefile = ["", "host", kind], subject.prefix, "player.mk"
    memories = [f"memory{number}" for number in range(len(actions.places.used))]
    bases, storage = [f"(uint8_t *){each}" for each in (*memories, marks["IMAGE"])], "static "
    if kind == "code":
        # The header of straight code names the memories.
        folders, program, makefile = [*folders, "vendors"], f"{subject.prefix}_code", "code.mk"
        memories = [f"{name}_{memory}" for memory in memories]
        bases, storage = memory_macros(subject), ""
    # The makefile says where those of folders "host" and "vendors" are needed.
    runtime = [file for file in sources_of_all_plans("", kind) if file.endswith(".c")]
    is_in_c = _is_in_c(actions.places.image)
    marks = {
        **marks,
        "PROGRAM": program,
        "UPPER_PROGRAM": program.upper(),
        "STAMP": stamp(subject, TITLE),
        "MAKEFILE": makefile,
        "STAMP_OF_MAKEFILE": "\n".join(f"# {e}" for e in subject.head(PLAYER, has_values=False)),
        "RUNTIME": " ".join(runtime),
        "SOURCES": " ".join([*plan, *([f"{image}.c"] if is_in_c else [])]),
        "IMAGE_BINARY": "" if is_in_c else f"{image}.bin",
        "INPUTS": max(LEAST_INPUTS, inputs),
        "MEMORIES": "\n".join(
            f"{storage}SPMILP_MEMORY uint64_t {memory}"
            f"[WORDS({marks['UPPER']}_MEMORY{number}_USED_BYTES)];"
            for number, memory in enumerate(memories)
        ),
        "BASES": "\n".join(f"    {base}," for base in bases),
        "WORKSPACES_OF_CORES": "\n".join(f"    WORKSPACE({number})," for number in workspaces),
        "HOST": '#include "spmilp_host.h"\n' if kind == "code" else "",
        "WORDS_OF_A_LIST": words_of_a_list(subject),
        "STREAM": "" if subject.loop is None else f", .stream = &{name}_stream",
    }
    marks["VENDORS"] = filled("vendors.mk", marks) if kind == "code" else ""
    if subject.loop is None:
        marks |= {"HOOKS": "", "MAIN": filled("mps2_once.c", marks)}
    else:
        marks["ROUNDS"] = len(actions.rounds)
        for side in Direction:
            count = sum(row[3] == side for row in actions.ports())
            marks[f"{side.name}_PORTS"] = count
        marks["STATES"] = len(actions.ports_of_states())
        marks["BEGIN"] = filled("stream_begin.c", marks) if marks["STATES"] else ""
        marks |= {"HOOKS": filled("mps2_hooks.c", marks), "MAIN": filled("mps2_stream.c", marks)}
    marks["RUNS"] = filled(f"runs_{kind}.c", marks)
    own = {f"{program}_{end}": end for end in ("program.h", "main.c", "mps2.c", "program.c")}
    own[makefile] = "player.mk"
    if subject.loop is not None:
        own[f"{program}_main.c"] = "stream_main.c"
    return {
        **sources_of_all_plans(*folders),
        **{file: filled(template, marks).encode() for file, template in own.items()},
    }
