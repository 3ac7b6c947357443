"""Random changes of files: of their bytes, and of the trees and models that they hold."""

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import onnx
import yaml
from google.protobuf.message import Message

ODD: tuple[Any, ...] = (
    *(None, True, False, "", "x", "NaN", "\ud800", "\0", "1/0", "1/3", [], {}, [[]]),
    *(0, -1, 1, 2, 0.5, 1e308, -0.0, 2**31, 2**32 - 1, 2**48, 2**48 + 1),
    *(2**63 - 1, 2**63, 2**64, 10**30, -(2**63)),
)
MARKS = (
    b"[" * 500,
    b"{" * 500,
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"&a [*a]",
    b"!!python/name:os.system",
)
LETTERS = (b"\n", b"\r", b",", b":", b'"', b"#", b"9" * 400, b"1e999", b"NaN", b"-")
TOKENS = [*(json.dumps(value).encode() for value in ODD), *MARKS, *LETTERS]


def changed(data: bytes, others: list[bytes], choose: random.Random) -> bytes:
    """Return a file with a few changes, of its tree where it has one."""
    ways: list[Callable[[bytes, random.Random], bytes]] = [changed_bytes]
    if data[:1] in (b"{", b"["):
        ways += [changed_json] * 3
    elif data[:2] == b"\x08\x08" or b"ir_version" in data[:20] or b"onnx" in data[:200]:
        ways += [changed_model] * 3
    elif b"name:" in data or b"rows:" in data:
        ways += [changed_yaml] * 3
    for _ in range(choose.choice((1, 1, 2, 4))):
        if choose.random() < 0.05:
            other = choose.choice(others)
            data = (
                data[: choose.randrange(len(data) + 1)] + other[choose.randrange(len(other) + 1) :]
            )
        try:
            data = choose.choice(ways)(data, choose)
        except Exception:
            data = changed_bytes(data, choose)
    return data


def changed_bytes(data: bytes, choose: random.Random) -> bytes:
    """Replace, insert or remove some bytes."""
    at = choose.randrange(len(data) + 1)
    to = min(len(data), at + choose.choice((0, 1, 1, 4, 100)))
    random_bytes = bytes(choose.randrange(256) for _ in range(choose.choice((0, 1, 4))))
    return (
        data[:at]
        + choose.choice((random_bytes, choose.choice(TOKENS), data[at:to] * 2))
        + data[to:]
    )


def changed_json(data: bytes, choose: random.Random) -> bytes:
    """Change a value in the tree of a JSON file."""
    return json.dumps(changed_tree(json.loads(data), choose)).encode()


def changed_yaml(data: bytes, choose: random.Random) -> bytes:
    """Change a value in the tree of a YAML file."""
    return yaml.safe_dump(changed_tree(yaml.safe_load(data), choose), sort_keys=False).encode()


def changed_tree(tree: Any, choose: random.Random) -> Any:
    """Replace, remove or repeat a value at a random place, or put one beside it."""
    places = list(places_in(tree))
    parent, key = choose.choice(places)
    what = choose.choice(("odd", "odd", "odd", "near", "remove", "copy"))
    if what == "odd":
        parent[key] = choose.choice(ODD)
    elif what == "near" and isinstance(parent[key], int):
        parent[key] += choose.choice((-1, 1, 1000, -1000))
    elif what == "remove":
        del parent[key]
    else:
        source, name = choose.choice(places)
        value = json.loads(json.dumps(source[name], default=str))
        if isinstance(parent, list):
            parent.insert(key, value)
        else:
            parent[choose.choice((key, str(name)))] = value
    return tree


def places_in(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each place of a tree, as what holds it and the key there."""
    for key in tree if isinstance(tree, dict) else range(len(tree)):
        yield tree, key
        if isinstance(tree[key], dict | list):
            yield from places_in(tree[key])


def changed_model(data: bytes, choose: random.Random) -> bytes:
    """Change a field of an ONNX model."""
    model = onnx.load_model_from_string(data)
    message: Message = model
    while True:
        set_fields = message.ListFields()
        if not set_fields:
            return data
        field, value = choose.choice(set_fields)
        repeated = hasattr(value, "__len__") and not isinstance(value, str | bytes)
        if field.message_type is not None and choose.random() < 0.95:
            message = choose.choice(value) if repeated else value
            continue
        if choose.random() < 0.2:
            message.ClearField(field.name)
        elif field.message_type is not None:
            value.add().CopyFrom(choose.choice(value)) if repeated else value.Clear()
        elif repeated:
            value.append(odd_like(value[0], choose))
        else:
            setattr(message, field.name, odd_like(value, choose))
        return bytes(model.SerializeToString())


def odd_like(value: Any, choose: random.Random) -> Any:
    """Return an odd value of a type."""
    if isinstance(value, bool | int):
        return choose.choice(
            (0, 1, -1, 2, 7, 13, 99, 2**31 - 1, 2**40, 2**62, value + 1, value - 1)
        )
    if isinstance(value, float):
        return choose.choice((0.0, -1.0, 1e38, float("nan"), float("inf")))
    if isinstance(value, bytes):
        return choose.choice((b"", b"\xff", value[: len(value) // 2], value * 2))
    names = (
        "",
        "x",
        "Relu",
        "Conv",
        "Reshape",
        "Loop",
        "ai.onnx.ml",
        "\n",
        "a" * 1000,
        value + "_",
    )
    return choose.choice(names)
