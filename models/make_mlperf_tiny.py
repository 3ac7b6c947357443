"""Make the four networks of MLPerf Tiny in float32: ``python make_mlperf_tiny.py [FOLDER]``.

The architectures are those of the reference implementations (Banbury et al., "MLPerf Tiny
Benchmark", NeurIPS 2021 Datasets and Benchmarks; github.com/mlcommons/tiny at v1.0,
``benchmark/training``), in NCHW with batch 1: kernels, strides, "same" padding, biases,
BatchNormalization and its epsilon. Dropout, which does nothing at inference, is left out. The
weights are random, not trained.
"""

import sys
from pathlib import Path

from graph_builder import GraphBuilder, Value

ORIGIN = "MLPerf Tiny v1.0 reference (github.com/mlcommons/tiny), {}"


def make_resnet8(folder: Path) -> None:
    """Image classification: ResNet-8 with 16, 32 and 64 channels on CIFAR-10."""
    graph = GraphBuilder("resnet8", seed=8)
    x = _first_layer(graph, (1, 3, 32, 32), 16, (3, 3), 1)
    for channels, stride in ((16, 1), (32, 2), (64, 2)):
        y = _conv_bn_relu(graph, x, channels, (3, 3), stride)
        y = graph.batch_norm(graph.conv(y, channels, (3, 3)))
        if stride > 1:
            x = graph.conv(x, channels, (1, 1), stride, normalised=False)
        x = graph.relu(graph.add(x, y))
    output = graph.softmax(graph.dense(graph.average(x, (8, 8)), 10, gain=3.0))
    graph.save(
        output,
        folder / "resnet8_f32.onnx",
        "MLPerf Tiny image classification",
        ORIGIN.format("image_classification"),
    )


def make_ds_cnn(folder: Path) -> None:
    """Keyword spotting: DS-CNN with four depthwise separable blocks on 49 x 10 MFCC."""
    graph = GraphBuilder("ds_cnn", seed=49)
    x = _first_layer(graph, (1, 1, 49, 10), 64, (10, 4), 2)
    for _ in range(4):
        x = _depthwise_separable(graph, x, 64)
    # The reference pools over half the input's size, 24 x 5, of the 25 x 5 that there are.
    output = graph.softmax(graph.dense(graph.average(x, (24, 5)), 12, gain=6.0))
    graph.save(
        output,
        folder / "ds_cnn_f32.onnx",
        "MLPerf Tiny keyword spotting",
        ORIGIN.format("keyword_spotting"),
    )


def make_mobilenetv1_025(folder: Path) -> None:
    """Visual wake words: MobileNetV1 of width 0.25 on 96 x 96 pictures, person or not."""
    graph = GraphBuilder("mobilenetv1_025", seed=96)
    x = _first_layer(graph, (1, 3, 96, 96), 8, (3, 3), 2)
    blocks = ((16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2))
    for channels, stride in (*blocks, *((128, 1),) * 5, (256, 2), (256, 1)):
        x = _depthwise_separable(graph, x, channels, stride)
    output = graph.softmax(graph.dense(graph.average(x, (3, 3)), 2, gain=1.5))
    graph.save(
        output,
        folder / "mobilenetv1_025_f32.onnx",
        "MLPerf Tiny visual wake words",
        ORIGIN.format("visual_wake_words"),
    )


def make_autoencoder(folder: Path) -> None:
    """Anomaly detection: the deep autoencoder 640-128x4-8-128x4-640."""
    graph = GraphBuilder("autoencoder", seed=640)
    x = graph.image("input", (1, 640))
    for features in (128, 128, 128, 128, 8, 128, 128, 128, 128):
        x = graph.relu(graph.batch_norm(graph.dense(x, features)))
    graph.save(
        graph.dense(x, 640),
        folder / "autoencoder_f32.onnx",
        "MLPerf Tiny anomaly detection",
        ORIGIN.format("anomaly_detection"),
    )


def _first_layer(
    graph: GraphBuilder,
    shape: tuple[int, ...],
    channels: int,
    kernel: tuple[int, int],
    stride: int,
) -> Value:
    x = graph.conv(graph.image("input", shape), channels, kernel, stride, centred=True)
    return graph.relu(graph.batch_norm(x))


def _conv_bn_relu(
    graph: GraphBuilder, x: Value, channels: int, kernel: tuple[int, int], stride: int = 1
) -> Value:
    return graph.relu(graph.batch_norm(graph.conv(x, channels, kernel, stride)))


def _depthwise_separable(graph: GraphBuilder, x: Value, channels: int, stride: int = 1) -> Value:
    deep = graph.conv(x, x.shape[1], (3, 3), stride, depthwise=True)
    return _conv_bn_relu(graph, graph.relu(graph.batch_norm(deep)), channels, (1, 1))


def main() -> None:
    """Write all four into the folder given, or beside this script."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    for make in (make_resnet8, make_ds_cnn, make_mobilenetv1_025, make_autoencoder):
        make(folder)


if __name__ == "__main__":
    main()
