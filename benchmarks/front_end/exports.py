"""Small modern networks with random weights, as PyTorch's two exporters write them."""

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import timm
import torch
import transformers
from torch import Tensor, nn
from torchvision.models import shufflenet_v2_x0_5

SEED = 0
OPSET = 18

Made = tuple[nn.Module, Tensor]
"""A network and its input."""


def of_timm(name: str, side: int, **changes: Any) -> Made:
    """Return a network of timm's, for images of some pixels a side and ten classes."""
    return timm.create_model(name, num_classes=10, **changes), torch.randn(1, 3, side, side)


def of_transformers(kind: str, *shape: int, **changes: Any) -> Made:
    """Return an encoder of transformers', for tokens where there is a vocabulary, else reals."""
    config = getattr(transformers, f"{kind}Config")(**changes, return_dict=False)
    network = transformers.AutoModel.from_config(config, attn_implementation="eager")
    tokens = changes.get("vocab_size")
    values = torch.randint(tokens, shape) if tokens else torch.randn(shape)
    return network.get_encoder() if kind in ("Whisper", "T5") else network, values


class Applied(nn.Module):
    """A function of a tensor and layers."""

    def __init__(self, function: Callable[..., Tensor], *layers: nn.Module) -> None:
        super().__init__()
        self.function, self.layers = function, nn.ModuleList(layers)

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x, *self.layers)


def last_step(x: Tensor, recurrent: nn.Module) -> Tensor:
    """Return what a recurrent layer gives at the last time step."""
    return recurrent(x)[0][:, -1]


def causal(given: int, made: int, kernel: int, dilation: int) -> nn.Module:
    """Return a convolution over time that sees nothing later."""
    pad = nn.ConstantPad1d((dilation * (kernel - 1), 0), 0.0)
    return nn.Sequential(pad, nn.Conv1d(given, made, kernel, dilation=dilation))


def gated(x: Tensor, both: nn.Module, out: nn.Module) -> Tensor:
    """Return a residual beside a tanh times a sigmoid, as in WaveNet."""
    value, gate = both(x).chunk(2, 1)
    return x + out(value.tanh() * gate.sigmoid())


def unet(x: Tensor, down: Any, inner: Any, up: Any, gate: Any, weigh: Any, last: Any) -> Tensor:
    """Return a U-Net's map; a gate of both levels weighs the skip."""
    skip = down(x)
    below = up(inner(nn.functional.max_pool2d(skip, 2)))
    weight = weigh(nn.functional.relu(gate(below) + skip)).sigmoid()
    return last(torch.cat([skip * weight, below], 1))


def pyramid(x: Tensor, *branches: Any) -> Tensor:
    """Return dilated convolutions beside the mean of the image."""
    mean = nn.functional.interpolate(nn.functional.adaptive_avg_pool2d(x, 1), x.shape[2:])
    return torch.cat([mean, *(branch(x) for branch in branches)], 1)


def boxes(x: Tensor, head: Any, *scales: Any) -> Tensor:
    """Return boxes and scores of anchors in several scales; distances are means of 8 bins."""
    maps = [head(nn.functional.silu(scale(x))) for scale in scales]
    sides = [torch.meshgrid(*map(torch.arange, one.shape[2:]), indexing="ij") for one in maps]
    anchors = torch.cat([torch.stack(grid[::-1]).flatten(1) + 0.5 for grid in sides], 1)
    box, score = torch.cat([one.flatten(2) for one in maps], 2).split([32, 5], 1)
    chances = box.view(1, 4, 8, -1).softmax(2)
    near, far = (chances * torch.arange(8).view(1, 1, -1, 1)).sum(2).chunk(2, 1)
    return torch.cat([anchors - near, anchors + far, score.sigmoid()], 1)


def experts(x: Tensor, gate: Any, *each: Any) -> Tensor:
    """Return the sum of experts, weighted by the two largest of the gate's results."""
    best, which = gate(x).topk(2, -1)
    weight = torch.zeros(len(x), len(each)).scatter(1, which, best.softmax(-1))
    return (torch.stack([expert(x) for expert in each], -1) * weight[:, None]).sum(-1)


def conformer(x: Tensor, before: Any, norm: Any, attend: Any, mix: Any, after: Any) -> Tensor:
    """Return what a block gives: half a feed-forward, attention, convolution, another half."""
    x = x + before(x) / 2
    normed = norm(x)
    x = x + attend(normed, normed, normed, need_weights=False)[0]
    x = x + mix(x.transpose(1, 2)).transpose(1, 2)
    return norm(x + after(x) / 2)


def forward_of(width: int) -> nn.Module:
    """Return a feed-forward part."""
    inner = nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width)
    return nn.Sequential(nn.LayerNorm(width), *inner)


def mixing(width: int) -> nn.Module:
    """Return a conformer's convolution."""
    each = nn.Conv1d(width, width, 7, padding=3, groups=width), nn.BatchNorm1d(width), nn.SiLU()
    return nn.Sequential(nn.Conv1d(width, 2 * width, 1), nn.GLU(1), *each)


def block(given: int, made: int) -> nn.Module:
    """Return a convolution with its normalisation and activation."""
    return nn.Sequential(nn.Conv2d(given, made, 3, padding=1), nn.BatchNorm2d(made), nn.ReLU())


def residual(x: Tensor, layer: nn.Module) -> Tensor:
    """Return the sum of an input and what a layer makes of it."""
    return x + nn.functional.relu(layer(x))


def conv(given: int, made: int, kernel: int = 1, reach: int = 0, stride: int = 1) -> nn.Module:
    """Return a convolution whose taps are ``reach`` apart, which is also the padding."""
    return nn.Conv2d(given, made, kernel, stride, reach, max(reach, 1))


BY_BOTH: dict[str, Callable[[], Made]] = {
    "conformer": lambda: (
        Applied(
            *(conformer, forward_of(32), nn.LayerNorm(32)),
            *(nn.MultiheadAttention(32, 2, batch_first=True), mixing(32), forward_of(32)),
        ),
        torch.randn(1, 24, 32),
    ),
    "tcn": lambda: (
        nn.Sequential(*(Applied(residual, causal(16, 16, 3, 2**d)) for d in range(3))),
        torch.randn(1, 16, 64),
    ),
    "wavenet": lambda: (
        nn.Sequential(
            *(Applied(gated, causal(16, 32, 2, 2**d), nn.Conv1d(16, 16, 1)) for d in range(4))
        ),
        torch.randn(1, 16, 64),
    ),
    "espcn": lambda: (
        nn.Sequential(conv(1, 32, 3, 1), nn.Tanh(), conv(32, 9, 3, 1), nn.PixelShuffle(3)),
        torch.randn(1, 1, 24, 24),
    ),
    "unet_attention": lambda: (
        Applied(
            *(unet, block(3, 8), block(8, 16), nn.ConvTranspose2d(16, 8, 2, 2)),
            *(conv(8, 8), conv(8, 1), block(16, 2)),
        ),
        torch.randn(1, 3, 32, 32),
    ),
    "aspp": lambda: (
        nn.Sequential(Applied(pyramid, *(conv(16, 16, 3, r) for r in (1, 3, 6))), conv(64, 16)),
        torch.randn(1, 16, 24, 24),
    ),
    "yolo_head": lambda: (
        Applied(boxes, conv(16, 37), *(conv(3, 16, 3, 1, stride) for stride in (2, 4, 8))),
        torch.randn(1, 3, 64, 64),
    ),
    "experts": lambda: (
        Applied(experts, nn.Linear(32, 4), *(forward_of(32) for _ in range(4))),
        torch.randn(16, 32),
    ),
    "gru": lambda: (Applied(last_step, nn.GRU(16, 32, 2, batch_first=True)), torch.randn(1, 8, 16)),
    "lstm_both_ways": lambda: (
        Applied(last_step, nn.LSTM(16, 16, batch_first=True, bidirectional=True)),
        torch.randn(1, 8, 16),
    ),
    "shufflenet": lambda: (shufflenet_v2_x0_5(num_classes=10), torch.randn(1, 3, 64, 64)),
    "mobilevit": lambda: of_timm("mobilevit_xxs", 32),
    "efficientnet_lite": lambda: of_timm("efficientnet_lite0", 32),
}
"""What both exporters write."""

STAGES: dict[str, Any] = {"depths": (1, 1, 1, 1), "dims": (16, 32, 48, 64)}
HIDDEN = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
TEXT = HIDDEN | {"vocab_size": 50, "intermediate_size": 64}
SEGFORMER = {"depths": [1, 1], "hidden_sizes": [16, 32], "num_attention_heads": [1, 2]}
SEGFORMER |= {"num_encoder_blocks": 2, "sr_ratios": [2, 1], "mlp_ratios": [2, 2]}
WHISPER = {"d_model": 32, "encoder_layers": 1, "encoder_attention_heads": 2, "num_mel_bins": 16}
WHISPER |= {"encoder_ffn_dim": 64, "max_source_positions": 24, "decoder_attention_heads": 2}
WAVES = {"conv_dim": (16, 16), "conv_stride": (5, 2), "conv_kernel": (10, 3)}
WAVES |= {"num_feat_extract_layers": 2, "num_conv_pos_embeddings": 16}
T5 = {"vocab_size": 50, "d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 1, "num_heads": 2}
SWIN = {"img_size": 56, "embed_dim": 24, "depths": (1, 2), "num_heads": (2, 4)}
XCIT = {"img_size": 64, "embed_dim": 64, "depth": 2, "num_heads": 2}
DEIT = {"img_size": 64, "embed_dim": 48, "depth": 2, "num_heads": 3}
LEVIT = {"img_size": 64, "embed_dim": (32, 48, 64), "num_heads": (2, 3, 4), "depth": (1, 1, 1)}
REPVIT = {"depth": (1, 1, 1, 1), "embed_dim": (16, 32, 48, 64)}

BY_DYNAMO: dict[str, Callable[[], Made]] = {
    "swin": lambda: of_timm("swin_tiny_patch4_window7_224", 56, **SWIN),
    "xcit": lambda: of_timm("xcit_nano_12_p16_224", 64, **XCIT),
    "ghostnet": lambda: of_timm("ghostnet_050", 32),
    "mobilenetv4": lambda: of_timm("mobilenetv4_conv_small_050", 32),
    "efficientvit": lambda: of_timm("efficientvit_b0", 32),
    "convnextv2": lambda: of_timm("convnextv2_atto", 32, **STAGES),
    "edgenext": lambda: of_timm("edgenext_xx_small", 64, **STAGES),
    "mambaout": lambda: of_timm("mambaout_femto", 32, **STAGES),
    "deit": lambda: of_timm("deit_tiny_patch16_224", 64, **DEIT),
    "levit": lambda: of_timm("levit_128s", 64, **LEVIT),
    "repvit": lambda: of_timm("repvit_m0_9", 32, **REPVIT),
    "segformer": lambda: of_transformers("Segformer", 1, 3, 32, 32, **SEGFORMER),
    "whisper_encoder": lambda: of_transformers("Whisper", 1, 16, 48, **WHISPER),
    "bert": lambda: of_transformers("Bert", 1, 16, **TEXT),
    "llama": lambda: of_transformers("Llama", 1, 16, **TEXT, use_cache=False),
    "t5_encoder": lambda: of_transformers("T5", 1, 16, **T5),
    "wav2vec2": lambda: of_transformers("Wav2Vec2", 1, 800, **HIDDEN, **WAVES),
}
"""What is exported with ``dynamo=True`` alone."""


def exports(folder: Path) -> Iterator[tuple[str, Path | None, str]]:
    """Write every network; yield its name and file, or why there is none."""
    warnings.simplefilter("ignore")
    makers = [(name, make, dynamo) for name, make in BY_BOTH.items() for dynamo in (True, False)]
    makers += [(name, make, True) for name, make in BY_DYNAMO.items()]
    for name, make, dynamo in makers:
        path = folder / f"{name}-{'dynamo' if dynamo else 'torchscript'}.onnx"
        torch.manual_seed(SEED)
        try:
            network, values = make()
            draw_what_is_constant(network)
            how = {"dynamo": dynamo, "opset_version": OPSET, "external_data": False}
            torch.onnx.export(network.eval(), (values,), path, verbose=False, **how)
        except Exception as error:  # Every library raises its own.
            yield path.stem, None, f"{type(error).__name__}: {error}".splitlines()[0]
        else:
            yield path.stem, path, ""


def draw_what_is_constant(network: nn.Module) -> None:
    """Draw the statistics, biases and scales of layers that are equal in a new network."""
    with torch.no_grad():
        for name, values in (*network.named_parameters(), *network.named_buffers()):
            if values.is_floating_point() and values.numel() > 1 and values.std() == 0:
                values += 0.2 * torch.randn_like(values)
                if "running_var" in name:
                    values.uniform_(0.5, 2)
