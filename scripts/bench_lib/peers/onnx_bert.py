"""Writes the BERT encoder as ONNX, for the bench's peer: with onnxruntime's own fused operators, as its optimizer
would leave them, and quantized by its own tool.

    onnx_bert.py MODEL_FOLDER OUTPUT_FOLDER

Runs in the bench's virtual environment.
"""

import json
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from safetensors.numpy import load_file

FUSED = "com.microsoft"


class Graph:
    """Nodes and constants as they are added."""

    def __init__(self):
        self.nodes, self.constants = [], []

    def constant(self, name, value):
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def node(self, operator, inputs, domain="", **attributes):
        output = f"{operator}_{len(self.nodes)}"
        node = helper.make_node(operator, inputs, [output], name=output, domain=domain, **attributes)
        self.nodes.append(node)
        return output


def encoder(config, weights):
    """From token ids and mask to unit vectors: mean over the tokens, as sentence-transformers does."""
    graph = Graph()
    epsilon = config["layer_norm_eps"]

    def parameter(name):
        return graph.constant(name, weights[name])

    def transposed(name):
        return graph.constant(name + ".T", weights[name].T)

    # Sentences alone: every token is of the first type, so that its row belongs to the positions.
    types = weights["embeddings.token_type_embeddings.weight"][0]
    words = parameter("embeddings.word_embeddings.weight")
    positions = graph.constant("positions", weights["embeddings.position_embeddings.weight"] + types)
    gamma, beta = parameter("embeddings.LayerNorm.weight"), parameter("embeddings.LayerNorm.bias")
    state = "embedded"
    graph.nodes.append(
        helper.make_node(
            "EmbedLayerNormalization",
            ["ids", "", words, positions, "", gamma, beta],
            [state, "unused"],
            name="embed",
            domain=FUSED,
            epsilon=epsilon,
        )
    )
    for index in range(config["num_hidden_layers"]):
        layer = f"encoder.layer.{index}."
        parts = [layer + "attention.self." + part for part in ("query", "key", "value")]
        qkv = graph.constant(layer + "qkv", np.concatenate([weights[part + ".weight"].T for part in parts], axis=1))
        bias = graph.constant(layer + "qkv.bias", np.concatenate([weights[part + ".bias"] for part in parts]))
        mixed = graph.node("Attention", [state, qkv, bias, "mask"], FUSED, num_heads=config["num_attention_heads"])
        state = closing(graph, state, mixed, layer + "attention.output", parameter, transposed, epsilon)
        up = graph.node("MatMul", [state, transposed(layer + "intermediate.dense.weight")])
        up = graph.node("BiasGelu", [up, parameter(layer + "intermediate.dense.bias")], FUSED)
        state = closing(graph, state, up, layer + "output", parameter, transposed, epsilon)
    pooled(graph, state)
    return model(graph, config["hidden_size"])


def closing(graph, state, inner, name, parameter, transposed, epsilon):
    """The product, residual and normalisation that end both halves of a layer."""
    product = graph.node("MatMul", [inner, transposed(name + ".dense.weight")])
    norm = [parameter(name + ".LayerNorm.weight"), parameter(name + ".LayerNorm.bias")]
    inputs = [product, state, *norm, parameter(name + ".dense.bias")]
    return graph.node("SkipLayerNormalization", inputs, FUSED, epsilon=epsilon)


def pooled(graph, state):
    axes = graph.constant("axis", np.array([1], dtype=np.int64))
    last = graph.constant("last", np.array([2], dtype=np.int64))
    mask = graph.node("Cast", ["mask"], to=TensorProto.FLOAT)
    mask = graph.node("Unsqueeze", [mask, last])
    total = graph.node("ReduceSum", [graph.node("Mul", [state, mask]), axes], keepdims=0)
    # The mean's divisor goes away in the normalisation.
    graph.nodes.append(helper.make_node("LpNormalization", [total], ["vectors"], name="unit", axis=-1, p=2))


def model(graph, width):
    shape = ["batch", "tokens"]
    made = helper.make_graph(
        graph.nodes,
        "bert",
        [helper.make_tensor_value_info(name, TensorProto.INT32, shape) for name in ("ids", "mask")],
        [helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["batch", width])],
        graph.constants,
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(FUSED, 1)]
    return helper.make_model(made, opset_imports=opsets, ir_version=8)


def main():
    source, out = Path(sys.argv[1]), Path(sys.argv[2])
    config = json.loads((source / "config.json").read_text())
    weights = load_file(source / "model.safetensors")
    out.mkdir(parents=True, exist_ok=True)
    full = str(out / "f32.onnx")
    onnx.save(encoder(config, weights), full)
    for name, per_channel in (("int8-tensor", False), ("int8-channel", True)):
        quantize_dynamic(
            full,
            str(out / f"{name}.onnx"),
            per_channel=per_channel,
            weight_type=QuantType.QInt8,
            # Shapes are not inferred through fused operators.
            extra_options={"DefaultTensorType": TensorProto.FLOAT},
        )


if __name__ == "__main__":
    main()
