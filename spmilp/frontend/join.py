"""Several networks as one: side by side, with an inference for each time one runs in a period."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from spmilp.files import sha256_of
from spmilp.frontend.graph import Group, Joined, Network, Operator, Tensor


def join(parts: Sequence[Joined]) -> Network:
    """Return networks as one, each as often as it runs in a period.

    Names begin with the network's, as ``kws/``, or the inference's, as ``kws@0/``: its inferences
    share their constants and nothing else.
    """
    tensors, groups = dict[str, Tensor](), list[Group]()
    inputs, outputs = list[str](), list[str]()
    renamed = dict[str, str]()
    for part in parts:
        own = part.network
        written = {one.output for group in own.groups for one in group.operators}
        for inference in part.member.inferences:
            name_of = {
                name: (inference if name in written or name in own.inputs else part.constants)
                + name
                for name in own.tensors
            }
            tensors |= {
                name_of[name]: replace(tensor, name=name_of[name])
                for name, tensor in own.tensors.items()
                if name_of[name] not in tensors
            }
            groups += _groups(own, inference, name_of, len(groups))
            inputs += [name_of[name] for name in own.inputs]
            outputs += [name_of[name] for name in own.outputs]
            renamed |= {name_of[here]: inference + name for here, name in own.renamed.items()}
    return Network(
        name="+".join(part.member.name for part in parts),
        tensors=tensors,
        groups=tuple(groups),
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        sha256=sha256_of("".join(part.network.sha256 for part in parts).encode()),
        renamed=renamed,
        # Rooms are those of one machine wherever an operator was divided.
        passes=max((part.network.passes for part in parts), key=lambda one: one.rooms),
        dim={p.constants + n: size for p in parts for n, size in p.network.dim.items()},
        given={p.constants + n: value for p in parts for n, value in p.network.given.items()},
        parts=tuple(parts),
    )


def _groups(
    network: Network, inference: str, name_of: Mapping[str, str], first: int
) -> list[Group]:
    """Return the groups of an inference; views that several of them begin with stay one."""
    operators = {id(one): one for group in network.groups for one in group.operators}
    made = {key: _operator(one, inference, name_of) for key, one in operators.items()}
    return [
        replace(
            group,
            index=first + group.index,
            name=inference + group.name,
            operators=tuple(made[id(one)] for one in group.operators),
            inputs=tuple(name_of[name] for name in group.inputs),
            output=name_of[group.output],
        )
        for group in network.groups
    ]


def _operator(one: Operator, inference: str, name_of: Mapping[str, str]) -> Operator:
    return replace(
        one,
        name=inference + one.name,
        inputs=tuple(name and name_of[name] for name in one.inputs),
        output=name_of[one.output],
    )
