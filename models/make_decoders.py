"""Export single decoder layers of large language models: ``python make_decoders.py [FOLDER]``.

One layer of ``transformers``' own Llama of two sizes, in float16: for prompts of 128 and of 512
tokens, and for one more token with the keys and values of 511 earlier ones as inputs. The files
hold no weights: each is a ``ConstantOfShape``, so that they are small, and only good for planning.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import torch
import transformers
from graph_builder import OPSET, save_model
from make_exported import remove_traces
from onnx import TensorProto, helper, numpy_helper
from periodic_weights import SMALLEST
from torch import nn
from transformers import DynamicCache, LlamaConfig, LlamaModel


@dataclass(frozen=True, kw_only=True)
class Decoder:
    """The size of one layer: widths in elements, numbers of heads."""

    name: str
    architecture: str
    hidden: int
    feed_forward: int
    heads: int
    key_value_heads: int

    @property
    def head(self) -> int:
        """Width of a head."""
        return self.hidden // self.heads

    def build(self) -> LlamaModel:
        """Return the layer, with the final norm."""
        config = LlamaConfig(
            num_hidden_layers=1,
            vocab_size=2,
            hidden_size=self.hidden,
            intermediate_size=self.feed_forward,
            num_attention_heads=self.heads,
            num_key_value_heads=self.key_value_heads,
            rms_norm_eps=1e-5,
            attn_implementation="eager",
        )
        return LlamaModel(config).to(torch.float16).eval()


DECODERS = (
    Decoder(
        name="decoder_1b",
        architecture="one layer of a Llama of the size of Llama 3.2 1B",
        hidden=2048,
        feed_forward=8192,
        heads=32,
        key_value_heads=8,
    ),
    Decoder(
        name="decoder_8b",
        architecture="one layer of a Llama of the size of Llama 3.1 8B",
        hidden=4096,
        feed_forward=14336,
        heads=32,
        key_value_heads=8,
    ),
)
PROMPTS = (128, 512)
CACHED = 511


class Prefill(nn.Module):
    """A prompt: gives the hidden states, and the keys and values to be cached."""

    def __init__(self, layer: LlamaModel) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, inputs_embeds: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return hidden states, keys and values."""
        cache = DynamicCache()
        result = self.layer(inputs_embeds=inputs_embeds, past_key_values=cache, use_cache=True)
        return result.last_hidden_state, cache.layers[0].keys, cache.layers[0].values


class Step(nn.Module):
    """One more token: gives its hidden state, key and value."""

    def __init__(self, layer: LlamaModel) -> None:
        super().__init__()
        self.layer = layer

    def forward(
        self, inputs_embeds: torch.Tensor, past_keys: torch.Tensor, past_values: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """Return the hidden state, key and value."""
        cache = DynamicCache()
        cache.update(past_keys, past_values, 0)
        result = self.layer(inputs_embeds=inputs_embeds, past_key_values=cache, use_cache=True)
        new = (each[:, :, -1:] for each in (cache.layers[0].keys, cache.layers[0].values))
        return result.last_hidden_state, *new


def make(decoder: Decoder, folder: Path) -> None:
    """Export the files of one size."""
    layer = decoder.build()
    outputs = ("last_hidden_state", "keys", "values")
    cached = (1, decoder.key_value_heads, CACHED, decoder.head)
    for tokens in PROMPTS:
        inputs = {"inputs_embeds": (1, tokens, decoder.hidden)}
        model = _export(Prefill(layer), inputs, outputs)
        _save(model, folder / f"{decoder.name}_prefill{tokens}_f16.onnx", decoder, layer)
    inputs = {"inputs_embeds": (1, 1, decoder.hidden), "past_keys": cached, "past_values": cached}
    _save(
        _export(Step(layer), inputs, outputs),
        folder / f"{decoder.name}_step_f16.onnx",
        decoder,
        layer,
    )


def _export(
    module: nn.Module, inputs: dict[str, tuple[int, ...]], outputs: tuple[str, ...]
) -> onnx.ModelProto:
    program = torch.onnx.export(
        module,
        kwargs={name: torch.ones(shape, dtype=torch.float16) for name, shape in inputs.items()},
        input_names=list(inputs),
        output_names=list(outputs),
        opset_version=OPSET,
        dynamo=True,
        verbose=False,
    )
    return program.model_proto


def _save(model: onnx.ModelProto, path: Path, decoder: Decoder, layer: LlamaModel) -> None:
    _drop_weights(model.graph)
    remove_traces(model)
    parameters = sum(p.numel() for name, p in layer.named_parameters() if "embed" not in name)
    save_model(
        model,
        path,
        decoder.architecture,
        {
            "architecture": decoder.architecture,
            "exporter": f"transformers {transformers.__version__}, torch {torch.__version__}",
            "parameters": str(parameters),
            "weights": "none, shapes only",
        },
    )


def _drop_weights(graph: onnx.GraphProto) -> None:
    """Replace large floats, weights and angles, by their shapes; and masks by a comparison."""
    nodes: list[onnx.NodeProto] = []
    for tensor in [one for one in graph.initializer if np.prod(one.dims) >= SMALLEST]:
        name, dims = tensor.name, tuple(tensor.dims)
        constants = {f"{name}/shape": np.array(dims)}
        if tensor.data_type == TensorProto.BOOL:
            rows, columns = np.arange(dims[-2]).reshape(1, 1, -1, 1), np.arange(dims[-1])
            if not np.array_equal(numpy_helper.to_array(tensor), columns <= rows):
                raise ValueError(f"{name}: not a causal mask of {dims} elements")
            constants = {f"{name}/columns": columns, f"{name}/rows": rows}
            nodes.append(helper.make_node("LessOrEqual", list(constants), [name], name))
        else:
            value = helper.make_tensor("value", tensor.data_type, [1], np.zeros(1))
            nodes.append(
                helper.make_node("ConstantOfShape", list(constants), [name], name, value=value)
            )
        graph.initializer.remove(tensor)
        graph.initializer.extend(numpy_helper.from_array(a, name) for name, a in constants.items())
    layers = list(graph.node)
    del graph.node[:]
    graph.node.extend([*nodes, *layers])


def main() -> None:
    """Write all into the folder given, or into ``decoders`` beside this script."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "decoders"
    for decoder in DECODERS:
        make(decoder, folder)


if __name__ == "__main__":
    main()
