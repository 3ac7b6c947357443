"""Every output of the network becomes a tensor that an operator writes to memory."""

from collections.abc import Mapping
from dataclasses import replace

from spmilp.frontend.draft import Draft
from spmilp.frontend.graph import Operator, Tensor
from spmilp.frontend.operators.family import Fusion
from spmilp.frontend.operators.registry import family_of

RESHAPES = frozenset({"Flatten", "Reshape", "Squeeze", "Unsqueeze"})
"""Views with all bytes of their input, in the same order."""


def settle_outputs(draft: Draft) -> Draft:
    """Return the draft with outputs that no view, input or constant stands for.

    An output that is another operator's result reshaped gives its name to that result, whose bytes
    are the same; the output then has the result's shape. All other outputs that are views, inputs
    or constants are copied by an operator ``Identity``.
    """
    for name in draft.outputs:
        producer = draft.producers().get(name)
        if producer is None:
            draft = _copied(draft, name)
        elif is_view(producer):
            base = _reshaped_result(draft, producer)
            draft = _copied(draft, name) if base is None else _renamed_result(draft, base, name)
    return draft


def is_view(operator: Operator) -> bool:
    """Say whether an operator moves no bytes."""
    return family_of(operator.kind).fusion is Fusion.VIEW


def _reshaped_result(draft: Draft, view: Operator) -> str | None:
    """Return the tensor of which ``view`` shows all bytes in order, if it can be an output."""
    producers = draft.producers()
    while view.kind in RESHAPES:
        source = view.inputs[0]
        producer = producers.get(source)
        if producer is None or source in draft.outputs:
            return None
        if not is_view(producer):
            return source
        view = producer
    return None


def _renamed_result(draft: Draft, base: str, name: str) -> Draft:
    """Give ``base`` the name of an output; the view of that name gets another."""
    return _renamed(draft, {base: name, name: _free_name(draft, f"{name}/view")})


def _copied(draft: Draft, name: str) -> Draft:
    """Let an ``Identity`` write an output, from a tensor that gets another name.

    An input of the network keeps its name; it is the copy that gets another.
    """
    if name in draft.inputs:
        source, target = name, _free_name(draft, f"{name}/copy")
        outputs = tuple(target if other == name else other for other in draft.outputs)
        draft = replace(draft, outputs=outputs)
    else:
        source, target = _free_name(draft, f"{name}/view"), name
        draft = _renamed(draft, {name: source})
    copy = Operator(name=target, kind="Identity", inputs=(source,), output=target)
    tensor = draft.tensors[source]
    written = Tensor(name=target, shape=tensor.shape, dtype=tensor.dtype)
    return replace(
        draft,
        operators=(*draft.operators, copy),
        tensors={**draft.tensors, target: written},
    )


def _renamed(draft: Draft, names: Mapping[str, str]) -> Draft:
    """Return the draft with tensors renamed wherever operators read or write them."""
    operators = tuple(
        replace(
            operator,
            inputs=tuple(names.get(name, name) for name in operator.inputs),
            output=names.get(operator.output, operator.output),
        )
        for operator in draft.operators
    )
    tensors = {
        names.get(name, name): replace(tensor, name=names.get(name, name))
        for name, tensor in draft.tensors.items()
    }
    return replace(draft, operators=operators, tensors=tensors)


def _free_name(draft: Draft, name: str) -> str:
    """Return a name that no tensor has."""
    while name in draft.tensors:
        name += "_"
    return name
