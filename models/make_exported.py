"""Export networks from their own library: ``python make_exported.py [FOLDER]``.

The networks are those of Hugging Face's ``transformers``, exported by ``torch.onnx.export`` with
``dynamo=True`` (``pip install 'spmilp[models]'``). Their weights are random, scaled by
``calibrate.py`` and stored by ``periodic_weights.py``. Other versions of the libraries may write
other graphs; those that were used stand in each model's metadata.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
import torch
import transformers
from calibrate import Feed, calibrate
from graph_builder import OPSET, save_model
from periodic_weights import fill, fold_up, large_weights
from random_numbers import RandomNumbers
from torch import nn
from transformers import (
    BertConfig,
    BertModel,
    GPT2Config,
    GPT2Model,
    LlamaConfig,
    LlamaModel,
    MobileNetV2Config,
    MobileNetV2ForImageClassification,
    ResNetConfig,
    ResNetForImageClassification,
    ViTConfig,
    ViTForImageClassification,
)

SEQUENCE = 64
IMAGE = (1, 3, 224, 224)
CALIBRATION_INPUTS = 4


@dataclass(frozen=True, kw_only=True)
class Network:
    """What is exported, and how.

    Parameters
    ----------
    input_name, input_shape
        Of the only input: float32, or token numbers where there is a ``vocabulary``.
    dimensions
        Names of the input's axes that stay open in the file.
    deviation
        Standard deviation of the layers' outputs.
    """

    name: str
    architecture: str
    seed: int
    build: Callable[[], nn.Module]
    input_name: str
    input_shape: tuple[int, ...]
    outputs: tuple[str, ...]
    vocabulary: int = 0
    dimensions: dict[int, str] = field(default_factory=dict)
    deviation: float = 1.0


class BertWithoutTokenTypes(nn.Module):
    """BERT on one segment, all of whose tokens are of type 0."""

    def __init__(self, bert: BertModel) -> None:
        super().__init__()
        self.bert = bert

    def forward(self, input_ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the last hidden state and the pooled first token."""
        result = self.bert(input_ids=input_ids, token_type_ids=torch.zeros_like(input_ids))
        return result.last_hidden_state, result.pooler_output


NETWORKS = (
    Network(
        name="resnet18",
        architecture="ResNet-18 (He et al., CVPR 2016)",
        seed=18,
        build=lambda: ResNetForImageClassification(
            ResNetConfig(
                layer_type="basic",
                depths=[2, 2, 2, 2],
                hidden_sizes=[64, 128, 256, 512],
                embedding_size=64,
                num_labels=1000,
            )
        ),
        input_name="pixel_values",
        input_shape=IMAGE,
        outputs=("logits",),
    ),
    Network(
        name="mobilenetv2",
        architecture="MobileNetV2, width 1.0 (Sandler et al., CVPR 2018)",
        seed=2,
        build=lambda: MobileNetV2ForImageClassification(
            MobileNetV2Config(image_size=224, num_labels=1000)
        ),
        input_name="pixel_values",
        input_shape=IMAGE,
        outputs=("logits",),
        # So that some values reach the upper limit of ReLU6.
        deviation=2.0,
    ),
    Network(
        name="bert_tiny",
        architecture="BERT-Tiny, 2 layers, 128 wide (Turc et al., arXiv:1908.08962), 512 tokens",
        seed=128,
        build=lambda: BertWithoutTokenTypes(
            BertModel(
                BertConfig(
                    num_hidden_layers=2,
                    hidden_size=128,
                    num_attention_heads=2,
                    intermediate_size=512,
                    vocab_size=512,
                    attn_implementation="eager",
                )
            )
        ),
        input_name="input_ids",
        # Not 1: the exporter takes an axis of one element for a fixed one.
        input_shape=(2, SEQUENCE),
        outputs=("last_hidden_state", "pooler_output"),
        vocabulary=512,
        dimensions={0: "batch", 1: "sequence"},
    ),
    Network(
        name="gpt2_block",
        architecture="GPT-2 small, the first of 12 layers (Radford et al., 2019)",
        seed=12,
        build=lambda: GPT2Model(
            GPT2Config(n_layer=1, use_cache=False, attn_implementation="eager")
        ),
        input_name="inputs_embeds",
        input_shape=(1, SEQUENCE, 768),
        outputs=("last_hidden_state",),
    ),
    Network(
        name="llama_block",
        architecture="Llama as in SmolLM-135M, the first of 30 layers (Touvron et al., "
        "arXiv:2302.13971; Ben Allal et al., 2024)",
        seed=135,
        build=lambda: LlamaModel(
            LlamaConfig(
                num_hidden_layers=1,
                hidden_size=576,
                intermediate_size=1536,
                num_attention_heads=9,
                num_key_value_heads=3,
                rms_norm_eps=1e-5,
                use_cache=False,
                attn_implementation="eager",
            )
        ),
        input_name="inputs_embeds",
        input_shape=(1, SEQUENCE, 576),
        outputs=("last_hidden_state",),
    ),
    Network(
        name="vit_tiny",
        architecture="ViT-Ti/16 (Dosovitskiy et al., ICLR 2021; Steiner et al., TMLR 2022)",
        seed=16,
        build=lambda: ViTForImageClassification(
            ViTConfig(
                hidden_size=192,
                num_hidden_layers=12,
                num_attention_heads=3,
                intermediate_size=768,
                num_labels=1000,
                attn_implementation="eager",
            )
        ),
        input_name="pixel_values",
        input_shape=IMAGE,
        outputs=("logits",),
    ),
)


def make(network: Network, folder: Path) -> None:
    """Export one network into ``NAME_f32.onnx``."""
    torch.manual_seed(network.seed)
    module = network.build().eval()
    _draw_vectors(module, RandomNumbers(network.seed))
    model = _export(module, network)
    weights = large_weights(model.graph)
    fill(model.graph, weights, network.seed)
    feeds = list(_feeds(network))
    factors = calibrate(model, feeds, network.deviation)
    fold_up(model.graph, weights, factors, network.seed)
    remove_traces(model)
    save_model(
        model,
        folder / f"{network.name}_f32.onnx",
        network.architecture,
        {
            "architecture": network.architecture,
            "exporter": f"transformers {transformers.__version__}, torch {torch.__version__}",
            "parameters": str(_used_parameters(module)),
            "weights": f"random, seed {network.seed}; not trained",
        },
    )


def _draw_vectors(module: nn.Module, random: RandomNumbers) -> None:
    """Draw biases, and scales of normalisations, which the library starts at 0 and 1."""
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if parameter.ndim == 1:
                limits = (0.8, 1.2) if name.endswith("weight") else (-0.2, 0.2)
                parameter.copy_(torch.from_numpy(random.uniform(parameter.shape, *limits)))


def _export(module: nn.Module, network: Network) -> onnx.ModelProto:
    feed = next(_feeds(network))
    names = {axis: torch.export.Dim(name) for axis, name in network.dimensions.items()}
    program = torch.onnx.export(
        module,
        kwargs={name: torch.from_numpy(values) for name, values in feed.items()},
        input_names=[network.input_name],
        output_names=list(network.outputs),
        dynamic_shapes={network.input_name: names} if names else None,
        opset_version=OPSET,
        dynamo=True,
        verbose=False,
    )
    return program.model_proto


def _feeds(network: Network) -> Iterator[Feed]:
    random = RandomNumbers(network.seed)
    for _ in range(CALIBRATION_INPUTS):
        if network.vocabulary:
            tokens = random.uniform(network.input_shape, 0, network.vocabulary)
            yield {network.input_name: tokens.astype(np.int64)}
        else:
            yield {network.input_name: random.normal(network.input_shape)}


def _used_parameters(module: nn.Module) -> int:
    """Count what the graph computes with: token embeddings only where there are token inputs."""
    unused = {"wte.weight", "embed_tokens.weight"}
    return sum(p.numel() for name, p in module.named_parameters() if name not in unused)


def remove_traces(model: onnx.ModelProto) -> None:
    """Remove what the exporter noted about the source files of the computer it ran on."""
    graph = model.graph
    for part in (*graph.node, *graph.value_info, *graph.initializer, *graph.input, *graph.output):
        del part.metadata_props[:]
        part.doc_string = ""
    del graph.metadata_props[:]


def main() -> None:
    """Write all into the folder given, or beside this script."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    for network in NETWORKS:
        make(network, folder)


if __name__ == "__main__":
    main()
