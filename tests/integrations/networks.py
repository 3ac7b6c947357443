"""Networks in PyTorch, of any size, with random weights and an example of an input."""

import torch
from torch import Tensor, nn


def convolution(
    before: int, after: int, kernel: int = 3, step: int = 1, groups: int = 1
) -> nn.Module:
    inside = nn.Conv2d(before, after, kernel, step, kernel // 2, groups=groups, bias=False)
    return nn.Sequential(inside, nn.BatchNorm2d(after), nn.ReLU())


class Residual(nn.Module):
    """A block with its input added, through a convolution where the shape changes."""

    def __init__(self, block: nn.Module, shortcut: nn.Module | None = None) -> None:
        super().__init__()
        self.block, self.shortcut = block, shortcut or nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return self.block(x) + self.shortcut(x)


def mobilenet_v2(size: int, scale: float = 1.0) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """Sandler et al., "MobileNetV2", CVPR 2018, table 2."""
    stages = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1))
    layers, before = [convolution(3, int(32 * scale), step=2)], int(32 * scale)
    for wider, channels, count, step in (*stages, (6, 160, 3, 2), (6, 320, 1, 1)):
        after = int(channels * scale)
        for i in range(count):
            inner, stride = wider * before, step if i == 0 else 1
            block = nn.Sequential(
                convolution(before, inner, 1),
                convolution(inner, inner, 3, stride, inner),
                nn.Conv2d(inner, after, 1),
            )
            layers.append(Residual(block) if stride == 1 and before == after else block)
            before = after
    last = [convolution(before, 4 * before, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers, *last, nn.Linear(4 * before, 10)), (
        torch.randn(1, 3, size, size),
    )


def resnet18(size: int, width: int = 64) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """He et al., "Deep Residual Learning", CVPR 2016, table 1."""
    layers, before = [convolution(3, width, 7, 2), nn.MaxPool2d(3, 2, 1)], width
    for stage in range(4):
        for i in range(2):
            after, step = width << stage, 2 if stage and i == 0 else 1
            block = nn.Sequential(convolution(before, after, step=step), convolution(after, after))
            shortcut = nn.Conv2d(before, after, 1, step) if step == 2 else None
            layers.append(Residual(block, shortcut))
            before = after
    last = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, 1000))
    return nn.Sequential(*layers, *last), (torch.randn(1, 3, size, size),)


class UNet(nn.Module):
    """Ronneberger et al., "U-Net", MICCAI 2015: each level's output waits for the way back."""

    def __init__(self, depth: int, before: int, width: int) -> None:
        super().__init__()
        self.down = nn.Sequential(convolution(before, width), convolution(width, width))
        self.inner = UNet(depth - 1, width, 2 * width) if depth else None
        self.pool, self.up = nn.MaxPool2d(2), nn.ConvTranspose2d(2 * width, width, 2, 2)
        self.out = nn.Sequential(convolution(2 * width, width), convolution(width, width))

    def forward(self, x: Tensor) -> Tensor:
        kept = self.down(x)
        if self.inner is None:
            return kept
        return self.out(torch.cat([kept, self.up(self.inner(self.pool(kept)))], 1))


def unet(size: int, width: int = 64) -> tuple[nn.Module, tuple[Tensor, ...]]:
    return UNet(3, 1, width), (torch.randn(1, 1, size, size),)


class Encoder(nn.Module):
    """Vaswani et al., "Attention Is All You Need", 2017: layers of attention and two products."""

    def __init__(self, layers: int, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.norms = (
            heads,
            nn.ModuleList(nn.LayerNorm(width) for _ in range(2 * layers)),
        )
        self.attend = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(layers))
        self.join = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.feed = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
            for _ in range(layers)
        )

    def forward(self, x: Tensor) -> Tensor:
        shape = (x.shape[0], x.shape[1], self.heads, -1)
        for i, (attend, join, feed) in enumerate(
            zip(self.attend, self.join, self.feed, strict=True)
        ):
            parts = attend(self.norms[2 * i](x)).chunk(3, dim=-1)
            query, key, value = (part.reshape(shape).transpose(1, 2) for part in parts)
            weights = (query @ key.transpose(-1, -2) / key.shape[-1] ** 0.5).softmax(-1)
            x = x + join((weights @ value).transpose(1, 2).reshape(x.shape))
            x = x + feed(self.norms[2 * i + 1](x))
        return x


def encoder(
    length: int, layers: int, width: int, heads: int
) -> tuple[nn.Module, tuple[Tensor, ...]]:
    return Encoder(layers, width, heads), (torch.randn(1, length, width),)


class Lstm(nn.Module):
    def __init__(self, layers: int, width: int) -> None:
        super().__init__()
        self.inside = nn.LSTM(width, width, layers, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.inside(x)[0]


def lstm(steps: int, layers: int, width: int) -> tuple[nn.Module, tuple[Tensor, ...]]:
    return Lstm(layers, width), (torch.randn(1, steps, width),)


class Inception(nn.Module):
    """Szegedy et al., "Going Deeper with Convolutions", CVPR 2015: four branches side by side."""

    def __init__(self, before: int, widths: tuple[int, int, int, int]) -> None:
        super().__init__()
        one, three, five, pool = widths
        self.branches = nn.ModuleList(
            [
                convolution(before, one, 1),
                nn.Sequential(convolution(before, three // 2, 1), convolution(three // 2, three)),
                nn.Sequential(convolution(before, five // 2, 1), convolution(five // 2, five, 5)),
                nn.Sequential(nn.MaxPool2d(3, 1, 1), convolution(before, pool, 1)),
            ]
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([branch(x) for branch in self.branches], 1)


def inception(size: int, blocks: int) -> tuple[nn.Module, tuple[Tensor, ...]]:
    layers: list[nn.Module] = [convolution(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)]
    before = 64
    for i in range(blocks):
        widths = (64 + 32 * i, 128 + 64 * i, 32 + 32 * i, 32 + 16 * i)
        layers.append(Inception(before, widths))
        before = sum(widths)
    return nn.Sequential(*layers), (torch.randn(1, 3, size, size),)
