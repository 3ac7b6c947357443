"""Small networks and machines, made by hand."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from spmilp.frontend.graph import Attribute, Group, Network, Operator, Tensor
from spmilp.frontend.operators.registry import family_of
from spmilp.machine.machine import (
    CoreKind,
    MacArray,
    Machine,
)
from tests.solvers.chains import star


class NetworkBuilder:
    """Adds one group after another; names of tensors are returned."""

    def __init__(self, dtype: str = "float32") -> None:
        self.dtype = np.dtype(dtype)
        self.tensors: dict[str, Tensor] = {}
        self.groups: list[Group] = []
        self.inputs: list[str] = []

    def input(self, shape: Sequence[int]) -> str:
        name = f"input{len(self.inputs)}"
        self.inputs.append(name)
        self.tensors[name] = Tensor(name=name, shape=tuple(shape), dtype=self.dtype)
        return name

    def constant(self, shape: Sequence[int]) -> str:
        name = f"weight{len(self.tensors)}"
        data = np.random.default_rng(len(self.tensors)).integers(-2, 3, shape).astype(self.dtype)
        self.tensors[name] = Tensor(name=name, shape=tuple(shape), dtype=self.dtype, data=data)
        return name

    def operator(self, kind: str, inputs: Sequence[str], **attributes: Attribute) -> Operator:
        number = len(self.tensors)
        operator = Operator(
            name=f"{kind.lower()}{number}",
            kind=kind,
            inputs=tuple(inputs),
            output=f"t{number}",
            attributes=attributes,
        )
        given = [self.tensors[name] if name else None for name in inputs]
        shape = family_of(kind)(operator, given).shape
        self.tensors[operator.output] = Tensor(
            name=operator.output, shape=tuple(shape), dtype=self.dtype
        )
        return operator

    def group(self, *operators: Operator, anchor: int = 0) -> str:
        made = {operator.output for operator in operators}
        read = [name for op in operators for name in op.inputs if name and name not in made]
        self.groups.append(
            Group(
                index=len(self.groups),
                name=operators[anchor].name,
                operators=operators,
                anchor=anchor,
                inputs=tuple(dict.fromkeys(read)),
                output=operators[-1].output,
            )
        )
        return operators[-1].output

    def conv(
        self,
        data: str,
        channels: int,
        kernel: int = 3,
        stride: int = 1,
        group: int = 1,
        residual: str = "",
    ) -> str:
        """Add a convolution with bias and Relu, and a residual addition where given."""
        ins = self.tensors[data].shape[1]
        conv = self.operator(
            "Conv",
            [
                data,
                self.constant((channels, ins // group, kernel, kernel)),
                self.constant((channels,)),
            ],
            kernel_shape=(kernel, kernel),
            strides=(stride, stride),
            dilations=(1, 1),
            pads=(kernel // 2,) * 4,
            group=group,
        )
        operators = [conv]
        if residual:
            operators.append(self.operator("Add", [conv.output, residual]))
        operators.append(self.operator("Relu", [operators[-1].output]))
        return self.group(*operators)

    def pool(self, data: str, kernel: int = 2, stride: int = 2) -> str:
        return self.group(
            self.operator(
                "MaxPool",
                [data],
                kernel_shape=(kernel, kernel),
                strides=(stride, stride),
                dilations=(1, 1),
                pads=(0, 0, 0, 0),
                ceil_mode=0,
                storage_order=0,
            )
        )

    def matmul(self, data: str, columns: int) -> str:
        """Add a product with a constant matrix and a Relu."""
        rows = self.tensors[data].shape[-1]
        product = self.operator("MatMul", [data, self.constant((rows, columns))])
        return self.group(product, self.operator("Relu", [product.output]))

    def matmul_under_views(self, data: str, columns: int) -> str:
        """Add a product in fewer axes than what is read and made, and a Relu behind it."""
        shape = self.tensors[data].shape
        rows = self.operator("Reshape", [data], shape=(*shape[:-2], 1, *shape[-2:]))
        product = self.operator("MatMul", [rows.output, self.constant((shape[-1], columns))])
        relu = self.operator("Relu", [product.output])
        made = self.operator("Reshape", [relu.output], shape=(1, *shape[:-1], columns))
        scaled = self.operator("Mul", [made.output, self.constant((columns,))])
        return self.group(rows, product, relu, made, scaled, anchor=1)

    def relu(self, data: str) -> str:
        return self.group(self.operator("Relu", [data]))

    def add(self, a: str, b: str) -> str:
        return self.group(self.operator("Add", [a, b]))

    def network(self, *outputs: str) -> Network:
        return Network(
            name="test",
            tensors=self.tensors,
            groups=tuple(self.groups),
            inputs=tuple(self.inputs),
            outputs=outputs,
            sha256="0" * 64,
        )


def star_machine(
    cores: int = 4,
    spm: int = 1 << 16,
    *,
    longest: int | None = None,
    dimensions: int | None = None,
    alignment: int = 4,
    kinds: Sequence[CoreKind] | None = None,
) -> Machine:
    """Scratchpads of equal size around one switch, with a DRAM and an engine in each."""
    given = kinds or (
        CoreKind(
            index=0,
            name="core",
            arrays=(
                MacArray(dtype="float32", unroll=(("K", 4), ("C", 4))),
                MacArray(dtype="int8", unroll=(("K", 8), ("C", 8))),
            ),
            lanes=(("float32", 8), ("int8", 16)),
            launch=10,
        ),
    )
    base = star(cores, spm, rate=16, setup=10)
    dram, *spms = base.memories
    return replace(
        base,
        memories=(dram, *(replace(memory, alignment=alignment) for memory in spms)),
        kinds=tuple(given),
        cores=tuple(replace(core, kind=core.index % len(given)) for core in base.cores),
        engines=tuple(
            replace(engine, rate=Fraction(8), longest=longest, dimensions=dimensions)
            for engine in base.engines
        ),
    )
