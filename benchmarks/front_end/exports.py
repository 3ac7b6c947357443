"""Modern networks with random weights, small, as PyTorch's exporters write them."""

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import timm
import torch
import transformers
from torch import Tensor, nn
from torchvision import models

SEED = 0
OPSET = 18

Made = tuple[nn.Module, tuple[Tensor, ...]]
"""A network and its inputs."""


def of_timm(name: str, side: int, **changes: Any) -> Made:
    """Return a network of timm's, for images of some pixels a side and ten classes."""
    network = timm.create_model(name, pretrained=False, num_classes=10, **changes)
    return network, (torch.randn(1, 3, side, side),)


def of_transformers(kind: str, *shape: int, **changes: Any) -> Made:
    """Return a network of transformers'; a vocabulary's tokens where there is one, else reals."""
    config = getattr(transformers, f"{kind}Config")(**changes, return_dict=False)
    network = transformers.AutoModel.from_config(config, attn_implementation="eager")
    tokens = changes.get("vocab_size")
    values = torch.randint(tokens, shape) if tokens else torch.randn(shape)
    return getattr(network, "encoder") if kind in ("Whisper", "T5") else network, (values,)


class Branches(nn.Module):
    """Sums, or concatenates, what modules make of the same input."""

    def __init__(self, *branches: nn.Module, join: Callable[..., Tensor]) -> None:
        super().__init__()
        self.branches, self.join = nn.ModuleList(branches), join

    def forward(self, x: Tensor) -> Tensor:
        return self.join([branch(x) for branch in self.branches])


class Last(nn.Module):
    """The first of a layer's results, of the last time step."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x)[0][:, -1]


class Gated(nn.Module):
    """WaveNet's unit: a tanh times a sigmoid of causal dilated convolutions, and a residual."""

    def __init__(self, channels: int, dilation: int) -> None:
        super().__init__()
        self.pad = nn.ConstantPad1d((dilation, 0), 0.0)
        self.both = nn.Conv1d(channels, 2 * channels, 2, dilation=dilation)
        self.out = nn.Conv1d(channels, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        value, gate = self.both(self.pad(x)).chunk(2, 1)
        return x + self.out(value.tanh() * gate.sigmoid())


class AttentionUNet(nn.Module):
    """A U-Net of two levels whose skip is weighted by an attention gate."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        c = channels
        self.down, self.inner = block(3, c), block(c, 2 * c)
        self.up = nn.ConvTranspose2d(2 * c, c, 2, 2)
        self.gate, self.skip = nn.Conv2d(c, c, 1), nn.Conv2d(c, c, 1)
        self.weigh, self.last = nn.Conv2d(c, 1, 1), block(2 * c, 2)

    def forward(self, x: Tensor) -> Tensor:
        skip = self.down(x)
        up = self.up(self.inner(nn.functional.max_pool2d(skip, 2)))
        weight = self.weigh(nn.functional.relu(self.gate(up) + self.skip(skip))).sigmoid()
        return self.last(torch.cat([skip * weight, up], 1))


class YoloHead(nn.Module):
    """Boxes and scores of three scales, decoded: distances by a softmax, anchors, strides."""

    def __init__(self, channels: int, bins: int = 8, classes: int = 5) -> None:
        super().__init__()
        self.bins, self.classes = bins, classes
        self.neck = nn.ModuleList(nn.Conv2d(3, channels, 3, stride, 1) for stride in (2, 4, 8))
        self.head = nn.ModuleList(nn.Conv2d(channels, 4 * bins + classes, 1) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        maps = [head(nn.functional.silu(n(x))) for n, head in zip(self.neck, self.head)]
        flat = torch.cat([one.flatten(2) for one in maps], 2)
        grids = [torch.meshgrid(*map(torch.arange, one.shape[2:]), indexing="ij") for one in maps]
        anchor = torch.cat([torch.stack(grid[::-1]).flatten(1) + 0.5 for grid in grids], 1)
        box, score = flat.split([4 * self.bins, self.classes], 1)
        chances = box.view(1, 4, self.bins, -1).softmax(2)
        near, far = (chances * torch.arange(self.bins).view(1, 1, -1, 1)).sum(2).chunk(2, 1)
        boxes = torch.cat([anchor - near, anchor + far], 1)
        return torch.cat([boxes, score.sigmoid()], 1)


class Experts(nn.Module):
    """A mixture of experts, all computed, weighted by the two largest gates."""

    def __init__(self, width: int, experts: int) -> None:
        super().__init__()
        self.gate = nn.Linear(width, experts)
        self.first = nn.Parameter(torch.randn(experts, width, 2 * width) / width**0.5)
        self.second = nn.Parameter(torch.randn(experts, 2 * width, width) / width**0.5)

    def forward(self, x: Tensor) -> Tensor:
        best, which = self.gate(x).topk(2, -1)
        weight = torch.zeros(x.shape[0], self.gate.out_features).scatter(1, which, best.softmax(-1))
        hidden = nn.functional.gelu(torch.einsum("tw,ewh->teh", x, self.first))
        return torch.einsum("teh,ehw,te->tw", hidden, self.second, weight)


class Conformer(nn.Module):
    """A block of a Conformer: half a feed-forward, attention, a convolution, another half."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        ahead = partial(nn.Sequential, nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.SiLU())
        self.before, self.after = (ahead(nn.Linear(4 * width, width)) for _ in range(2))
        self.norm, self.last = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.convolution = nn.Sequential(
            nn.Conv1d(width, 2 * width, 1),
            nn.GLU(1),
            nn.Conv1d(width, width, 7, padding=3, groups=width),
            nn.BatchNorm1d(width),
            nn.SiLU(),
            nn.Conv1d(width, width, 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.before(x) / 2
        normed = self.norm(x)
        x = x + self.attention(normed, normed, normed, need_weights=False)[0]
        x = x + self.convolution(x.transpose(1, 2)).transpose(1, 2)
        return self.last(x + self.after(x) / 2)


def block(given: int, made: int) -> nn.Module:
    """Return a convolution with its normalisation and activation."""
    return nn.Sequential(nn.Conv2d(given, made, 3, padding=1), nn.BatchNorm2d(made), nn.ReLU())


def pyramid(channels: int) -> nn.Module:
    """Return ASPP: convolutions of several dilations and the mean of the image."""
    mean = nn.Sequential(
        nn.AdaptiveAvgPool2d(1), nn.Conv2d(channels, channels, 1), nn.Upsample((24, 24))
    )
    wide = [nn.Conv2d(channels, channels, 3, padding=each, dilation=each) for each in (1, 3, 6)]
    merged = nn.Conv2d(4 * channels, channels, 1)
    return nn.Sequential(
        block(3, channels), Branches(*wide, mean, join=partial(torch.cat, dim=1)), merged
    )


def temporal(channels: int) -> nn.Module:
    """Return a TCN: causal dilated convolutions with residuals."""
    layers = []
    for dilation in (1, 2, 4):
        pad = nn.ConstantPad1d((2 * dilation, 0), 0.0)
        causal = nn.Conv1d(channels, channels, 3, dilation=dilation)
        causal = nn.Sequential(pad, nn.utils.parametrizations.weight_norm(causal), nn.ReLU())
        layers.append(Branches(causal, nn.Identity(), join=sum))
    return nn.Sequential(nn.Conv1d(8, channels, 1), *layers, nn.AdaptiveAvgPool1d(1), nn.Flatten())


def image(side: int, channels: int = 3) -> tuple[Tensor]:
    """Return a random image."""
    return (torch.randn(1, channels, side, side),)


def sequence(*shape: int) -> tuple[Tensor]:
    """Return a random sequence."""
    return (torch.randn(1, *shape),)


SMALL = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
TEXT = {**SMALL, "vocab_size": 50, "intermediate_size": 64}

BY_BOTH: dict[str, Callable[[], Made]] = {
    "conformer": lambda: (Conformer(32, 2), sequence(24, 32)),
    "tcn": lambda: (temporal(16), sequence(8, 64)),
    "wavenet": lambda: (nn.Sequential(*(Gated(16, 2**d) for d in range(4))), sequence(16, 64)),
    "espcn": lambda: (
        nn.Sequential(
            *(nn.Conv2d(1, 32, 5, padding=2), nn.Tanh(), nn.Conv2d(32, 9, 3, padding=1)),
            nn.PixelShuffle(3),
        ),
        image(24, 1),
    ),
    "unet_attention": lambda: (AttentionUNet(8), image(32)),
    "yolo_head": lambda: (YoloHead(16), image(64)),
    "aspp": lambda: (pyramid(16), image(24)),
    "shufflenet": lambda: (models.shufflenet_v2_x0_5(num_classes=10), image(64)),
    "gru": lambda: (Last(nn.GRU(16, 32, 2, batch_first=True)), sequence(8, 16)),
    "lstm_both_ways": lambda: (
        Last(nn.LSTM(16, 16, batch_first=True, bidirectional=True)),
        sequence(8, 16),
    ),
    "experts": lambda: (Experts(32, 4), (torch.randn(16, 32),)),
    "mobilevit": partial(of_timm, "mobilevit_xxs", 64),
    "efficientnet_lite": partial(of_timm, "efficientnet_lite0", 32),
}
"""What both exporters write."""

BY_DYNAMO: dict[str, Callable[[], Made]] = {
    "swin": partial(
        *(of_timm, "swin_tiny_patch4_window7_224", 56),
        **dict(img_size=56, embed_dim=24, depths=(1, 2), num_heads=(2, 4)),
    ),
    "xcit": partial(
        of_timm, "xcit_nano_12_p16_224", 64, img_size=64, depth=2, embed_dim=64, num_heads=2
    ),
    "ghostnet": partial(of_timm, "ghostnet_050", 32),
    "mobilenetv4": partial(of_timm, "mobilenetv4_conv_small_050", 32),
    "efficientvit": partial(of_timm, "efficientvit_b0", 32),
    "convnextv2": partial(
        of_timm, "convnextv2_atto", 32, depths=(1, 1, 1, 1), dims=(16, 32, 48, 64)
    ),
    "segformer": partial(
        *(of_transformers, "Segformer", 1, 3, 32, 32),
        **dict(depths=[1, 1], hidden_sizes=[16, 32], num_attention_heads=[1, 2]),
        **dict(num_encoder_blocks=2, sr_ratios=[2, 1], mlp_ratios=[2, 2], decoder_hidden_size=32),
    ),
    "whisper_encoder": partial(
        *(of_transformers, "Whisper", 1, 16, 48),
        **dict(d_model=32, encoder_layers=1, encoder_attention_heads=2, encoder_ffn_dim=64),
        **dict(decoder_layers=1, decoder_attention_heads=2, decoder_ffn_dim=64),
        **dict(num_mel_bins=16, max_source_positions=24),
    ),
    "resmlp": partial(of_timm, "resmlp_12_224", 64, img_size=64, embed_dim=48, num_blocks=2),
    "deit": partial(
        *(of_timm, "deit_tiny_patch16_224", 64), img_size=64, embed_dim=48, depth=2, num_heads=3
    ),
    "poolformer": partial(
        of_timm, "poolformerv2_s12", 32, depths=(1, 1, 1, 1), dims=(16, 32, 48, 64)
    ),
    "levit": partial(
        *(of_timm, "levit_128s", 64),
        **dict(img_size=64, embed_dim=(32, 48, 64), num_heads=(2, 3, 4), depth=(1, 1, 1)),
    ),
    "edgenext": partial(
        of_timm, "edgenext_xx_small", 64, depths=(1, 1, 2, 1), dims=(16, 32, 48, 64)
    ),
    "lcnet": partial(of_timm, "lcnet_035", 32),
    "starnet": partial(of_timm, "starnet_s050", 32),
    "repvit": partial(of_timm, "repvit_m0_9", 32, depth=(1, 1, 1, 1), embed_dim=(16, 32, 48, 64)),
    "inception_next": partial(
        of_timm, "inception_next_atto", 32, depths=(1, 1, 1, 1), dims=(16, 32, 48, 64)
    ),
    "mambaout": partial(of_timm, "mambaout_femto", 32, depths=(1, 1, 1, 1), dims=(16, 32, 48, 64)),
    "bert": partial(of_transformers, "Bert", 1, 16, **TEXT),
    "llama": partial(of_transformers, "Llama", 1, 16, **TEXT, use_cache=False),
    "t5_encoder": partial(
        *(of_transformers, "T5", 1, 16),
        **dict(vocab_size=50, d_model=32, d_kv=16, d_ff=64, num_layers=1, num_heads=2),
    ),
    "wav2vec2": partial(
        *(of_transformers, "Wav2Vec2", 1, 800),
        **dict(SMALL, intermediate_size=64, conv_dim=(16, 16), conv_stride=(5, 2)),
        **dict(conv_kernel=(10, 3), num_feat_extract_layers=2),
        **dict(num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4),
    ),
    "densenet": lambda: (
        models.DenseNet(8, (2, 2), 16, num_classes=10),
        image(32),
    ),
    "pvt": partial(
        *(of_timm, "pvt_v2_b0", 64),
        **dict(depths=(1, 1, 1, 1), embed_dims=(16, 32, 48, 64), num_heads=(1, 1, 2, 2)),
    ),
}
"""What is exported with ``dynamo=True`` alone."""


def exports(folder: Path) -> Iterator[tuple[str, Path | None, str]]:
    """Write every network; yield its name and file, or why there is none."""
    makers = [(name, make, dynamo) for name, make in BY_BOTH.items() for dynamo in (True, False)]
    makers += [(name, make, True) for name, make in BY_DYNAMO.items()]
    for name, make, dynamo in makers:
        path = folder / f"{name}-{'dynamo' if dynamo else 'torchscript'}.onnx"
        torch.manual_seed(SEED)
        try:
            network, inputs = make()
            spread(network)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                torch.onnx.export(
                    *(network.eval(), inputs, path),
                    **dict(dynamo=dynamo, opset_version=OPSET, verbose=False, external_data=False),
                )
        except Exception as error:  # Every library raises its own.
            yield path.stem, None, f"{type(error).__name__}: {str(error).splitlines()[0]}"
        else:
            yield path.stem, path, ""


def spread(network: nn.Module) -> None:
    """Draw what a new network has constant: statistics, biases, scales of layers."""
    with torch.no_grad():
        for name, values in (*network.named_parameters(), *network.named_buffers()):
            is_constant = values.is_floating_point() and values.numel() > 1 and values.std() == 0
            if is_constant and "running_var" not in name:
                values += 0.2 * torch.randn_like(values)
            elif is_constant:
                values.uniform_(0.5, 2)
