"""The instances that are made from real networks: which piece, cut how, on which machine."""

from dataclasses import dataclass

from small_machines import Shape

from spmilp.problem.objective import Quantity

MEMORY = {"exact": 1.0, "verytight": 1.1, "tight": 1.5, "ample": 8.0}
"""Size of a scratchpad as a multiple of the largest working set of a task."""

LOAD = {"compute": 4.0, "balanced": 1.0, "traffic": 0.25}
"""The DRAM's rate as a multiple of what moves the compulsory bytes while the cores compute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """One instance.

    Parameters
    ----------
    name
        Of the piece.
    model, groups
        The network and its first and last group.
    cuts
        See ``pieces.tilings``.
    """

    name: str
    model: str
    groups: tuple[int, int]
    cuts: tuple[str, ...]
    shape: Shape
    memory: str
    load: str
    objective: Quantity = Quantity.MAKESPAN


def spec(
    name: str,
    cuts: str,
    shape: Shape,
    memory: str,
    load: str,
    objective: Quantity = Quantity.MAKESPAN,
) -> Spec:
    """Return the instance of a piece by its name."""
    model, first, last = PIECES[name]
    return Spec(
        name=name,
        model=model,
        groups=(first, last),
        cuts=tuple(cuts.split()),
        shape=shape,
        memory=memory,
        load=load,
        objective=objective,
    )


PIECES = {
    "residual": ("resnet8_int8", 2, 3),
    "branch": ("resnet8_int8", 4, 6),
    "stages": ("resnet8_int8", 4, 9),
    "resnet8": ("resnet8_int8", 1, 12),
    "separable": ("ds_cnn_int8", 2, 3),
    "separable2": ("ds_cnn_int8", 2, 5),
    "dscnn": ("ds_cnn_int8", 1, 12),
    "mobile": ("mobilenetv1_025_int8", 8, 13),
    "mobilelong": ("mobilenetv1_025_int8", 2, 13),
    "inverted": ("mobilenetv2_f32", 21, 23),
    "dense": ("autoencoder_int8", 1, 4),
    "decoder": ("autoencoder_int8", 6, 10),
    "autoencoder": ("autoencoder_int8", 1, 10),
    "lstm": ("tiny_lstm_f32", 0, 8),
    "lstmlong": ("tiny_lstm_f32", 0, 49),
    "gru": ("tiny_gru_f32", 0, 11),
    "attention": ("bert_tiny_f32", 7, 10),
    "bertlayer": ("bert_tiny_f32", 1, 15),
    "mlp": ("bert_tiny_f32", 12, 15),
    "gated": ("llama_block_f32", 18, 22),
    "basic": ("resnet18_f32", 17, 20),
}

ONE = Shape(topology="bus", cores=1)
ONE_SLOW = Shape(topology="bus", cores=1, channels=1)
BUS2 = Shape(topology="bus", cores=2)
XBAR2 = Shape(topology="crossbar", cores=2)
ALONE2 = Shape(topology="crossbar", cores=2, links=False)
REMOTE2 = Shape(topology="crossbar", cores=2, remote=True)
XBAR3 = Shape(topology="crossbar", cores=3, channels=1)
CAST3 = Shape(topology="crossbar", cores=3, multicast=True)
MESH4 = Shape(topology="mesh 2x2", cores=4)
ALONE4 = Shape(topology="mesh 2x2", cores=4, links=False)
REMOTE4 = Shape(topology="mesh 2x2", cores=4, remote=True)
CAST4 = Shape(topology="crossbar", cores=4, multicast=True)
RING4 = Shape(topology="ring", cores=4)
CLUSTER4 = Shape(topology="bus", cores=4, share=4)
VECTOR4 = Shape(topology="crossbar", cores=4, vector=1)
STAGED4 = Shape(topology="crossbar", cores=4, staged=True)
MESH6 = Shape(topology="mesh 3x2", cores=6)
RING8 = Shape(topology="ring", cores=8, share=2)
STAGED8 = Shape(topology="crossbar", cores=8, share=4, staged=True)
CAST8 = Shape(topology="crossbar", cores=8, multicast=True)
MESH9 = Shape(topology="mesh 3x3", cores=9)
REMOTE9 = Shape(topology="mesh 3x3", cores=9, remote=True)
MESH16 = Shape(topology="mesh 4x4", cores=16)
ALONE16 = Shape(topology="mesh 4x4", cores=16, links=False)

TRAFFIC, ENERGY, PEAK = Quantity.DRAM_TRAFFIC, Quantity.ENERGY, Quantity.PEAK_SPM

SPECS = (
    # 5 to 12 tasks
    spec("residual", "h3", ONE, "tight", "balanced"),
    spec("residual", "h4", XBAR2, "verytight", "balanced"),
    spec("branch", "h2", ALONE2, "tight", "compute"),
    spec("branch", "c2", XBAR3, "ample", "traffic"),
    spec("separable", "c3 h3", REMOTE2, "tight", "traffic"),
    spec("dense", "c2", BUS2, "exact", "traffic"),
    spec("dense", "c3", CAST3, "ample", "balanced"),
    spec("attention", "c2", ONE, "verytight", "balanced", PEAK),
    spec("mlp", "h2", CLUSTER4, "tight", "compute"),
    spec("resnet8", "c1", ONE, "verytight", "balanced", TRAFFIC),
    spec("autoencoder", "c1", ONE_SLOW, "exact", "traffic"),
    # 13 to 19 tasks
    spec("stages", "h3", MESH4, "tight", "compute"),
    spec("branch", "h5", REMOTE4, "tight", "balanced"),
    spec("separable2", "h4", BUS2, "exact", "balanced"),
    spec("dense", "c4", XBAR3, "tight", "compute"),
    spec("dense", "c2/2", BUS2, "tight", "traffic"),
    spec("gru", "c1", XBAR2, "ample", "balanced"),
    spec("inverted", "c4 c4 h4", CAST4, "tight", "traffic"),
    # 20 to 40 tasks
    spec("lstm", "c3", XBAR3, "tight", "compute"),
    spec("residual", "h12", MESH4, "verytight", "balanced"),
    spec("residual", "h10", ALONE4, "tight", "compute"),
    spec("branch", "c2h4", CLUSTER4, "tight", "balanced"),
    spec("branch", "c2h5", MESH4, "ample", "traffic"),
    spec("stages", "h4", REMOTE4, "verytight", "balanced"),
    spec("stages", "h4", STAGED4, "tight", "compute"),
    spec("separable2", "h8", RING4, "tight", "balanced"),
    spec("separable2", "c6 h6", CAST4, "ample", "compute"),
    spec("dense", "c8", CAST4, "tight", "traffic"),
    spec("dense", "c3/3", BUS2, "verytight", "balanced"),
    spec("decoder", "c6", XBAR2, "tight", "balanced", ENERGY),
    spec("attention", "c2h4", VECTOR4, "ample", "compute"),
    spec("attention", "c2h3", XBAR2, "verytight", "balanced", TRAFFIC),
    spec("mlp", "h6", RING4, "tight", "balanced"),
    spec("bertlayer", "h2", BUS2, "tight", "compute"),
    spec("gru", "c2", REMOTE2, "verytight", "compute"),
    spec("basic", "c6", MESH6, "tight", "traffic"),
    spec("resnet8", "h3", XBAR3, "tight", "balanced", PEAK),
    # 41 to 80 tasks
    spec("stages", "h8", MESH4, "tight", "balanced"),
    spec("stages", "c2h4", STAGED8, "tight", "traffic"),
    spec("stages", "h10", MESH6, "verytight", "compute"),
    spec("separable2", "h12", ALONE4, "tight", "balanced"),
    spec("dscnn", "h5", MESH4, "exact", "compute"),
    spec("mobile", "h8", RING8, "tight", "balanced"),
    spec("mobile", "c4h2", CAST8, "ample", "traffic"),
    spec("mobilelong", "h6", XBAR3, "verytight", "balanced"),
    spec("bertlayer", "h4", VECTOR4, "tight", "balanced"),
    spec("gated", "c12", MESH9, "tight", "traffic"),
    spec("inverted", "c16", REMOTE4, "tight", "compute"),
    spec("lstmlong", "c1", XBAR2, "ample", "balanced"),
    spec("autoencoder", "c6", ALONE4, "tight", "traffic", TRAFFIC),
    # 81 to 200 tasks
    spec("dscnn", "h9", MESH9, "tight", "balanced"),
    spec("resnet8", "h16", MESH16, "tight", "balanced"),
    spec("resnet8", "c2h8", ALONE16, "verytight", "compute"),
    spec("mobilelong", "h12", REMOTE9, "tight", "traffic"),
    spec("mobilelong", "c4h4", MESH16, "ample", "compute"),
    spec("bertlayer", "h8", CAST8, "tight", "balanced"),
    spec("gated", "c32", MESH16, "tight", "balanced"),
)
