"""all-MiniLM-L6-v2 as an ONNX graph: token ids and mask in, one unit vector a text out.

Pooling and normalization are inside the graph. The quantized form keeps every matrix at 8 bits, one scale
a column, and quantizes activations one scale a TOKEN: with onnxruntime's own dynamic quantization (one
scale for the whole batch) a text's vector moved by a cosine of 0.01 with whatever shared its batch.
Weights are unsigned on purpose: AVX2 without VNNI saturates in its unsigned-by-signed kernel, so signed
weights would give each kind of processor its own vectors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

Floats = NDArray[np.float32]

DIMENSIONS = 384
LAYERS = 6
HEADS = 12
MAX_TOKENS = 256
EPSILON = 1e-12
ZERO_POINT = 128
SMALLEST_SCALE = 1e-9
"""Keeps a row of zeros from dividing by zero."""

MICROSOFT = "com.microsoft"


class _Graph:
    """Collects nodes and constants; each method returns the name of what it made."""

    def __init__(self, weights: Mapping[str, Floats], quantized: bool) -> None:
        self._weights = weights
        self._quantized = quantized
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, onnx.TensorProto] = {}

    def constant(self, name: str, value: NDArray[np.generic]) -> str:
        if name not in self._constants:
            self._constants[name] = numpy_helper.from_array(np.ascontiguousarray(value), name)
        return name

    def weight(self, name: str) -> str:
        return self.constant(name, self._weights[name])

    def node(self, operator: str, inputs: list[str], output: str, domain: str = "", **attributes: Any) -> str:
        self._nodes.append(helper.make_node(operator, inputs, [output], domain=domain, **attributes))
        return output

    def embeddings(self) -> str:
        """Word, position and (constant) segment embeddings, normalized; shape (batch, tokens, 384)."""
        table = self._weights["embeddings.word_embeddings.weight"]
        if self._quantized:
            scale = _scale(table)
            rows = self.constant("words", np.rint(table / scale).astype(np.int8))
            self.node("Gather", [rows, "input_ids"], "word_bytes")
            self.node("Cast", ["word_bytes"], "word_floats", to=TensorProto.FLOAT)
            self.node("Gather", [self.constant("word_scales", scale), "input_ids"], "word_scale")
            self.node("Mul", ["word_floats", "word_scale"], "word")
        else:
            self.node("Gather", [self.constant("words", table), "input_ids"], "word")
        places = self._weights["embeddings.position_embeddings.weight"][:MAX_TOKENS]
        segment = self._weights["embeddings.token_type_embeddings.weight"][0]
        self.node("Shape", ["input_ids"], "length", start=1, end=2)
        first = self.constant("first", np.array([0], np.int64))
        self.node("Slice", [self.constant("places", places + segment), first, "length"], "place")
        self.node("Add", ["word", "place"], "embedded")
        norm = [self.weight("embeddings.LayerNorm.weight"), self.weight("embeddings.LayerNorm.bias")]
        return self.node("LayerNormalization", ["embedded", *norm], "x", epsilon=EPSILON, axis=-1)

    def quantize(self, x: str) -> tuple[str, str]:
        """Unsigned bytes of `x` (tokens, n) around 128 and their scale (tokens, 1)."""
        axis = self.constant("axis_1", np.array([1], np.int64))
        self.node("Abs", [x], f"{x}.abs")
        self.node("ReduceMax", [f"{x}.abs", axis], f"{x}.max", keepdims=1)
        step = self.constant("step", np.array(1 / 127, np.float32))
        self.node("Mul", [f"{x}.max", step], f"{x}.raw_scale")
        floor = self.constant("smallest_scale", np.array(SMALLEST_SCALE, np.float32))
        scale = self.node("Max", [f"{x}.raw_scale", floor], f"{x}.scale")
        self.node("Squeeze", [scale, axis], f"{x}.scales")
        self.node("QuantizeLinear", [x, f"{x}.scales", "token_zero_points"], f"{x}.bytes", axis=0)
        return f"{x}.bytes", scale

    def linear(self, x: str, name: str, matrix: Floats) -> str:
        """`x` (tokens, n) times the matrix (m, n) transposed; the bias is left to a later fused operator."""
        output = f"{name}.product"
        if not self._quantized:
            return self.node("MatMul", [x, self.constant(f"{name}.matrix", matrix.T)], output)
        x_bytes, x_scale = self.quantize(x)
        scale = _scale(matrix)
        shifted = np.rint(matrix / scale) + ZERO_POINT
        zero = self.constant("zero_point", np.array(ZERO_POINT, np.uint8))
        columns = self.constant(f"{name}.matrix", shifted.T.astype(np.uint8))
        self.node("MatMulInteger", [x_bytes, columns, zero, zero], f"{name}.integers")
        self.node("Cast", [f"{name}.integers"], f"{name}.floats", to=TensorProto.FLOAT)
        self.node("Mul", [f"{name}.floats", self.constant(f"{name}.scales", scale[:, 0])], f"{name}.scaled")
        return self.node("Mul", [f"{name}.scaled", x_scale], output)

    def add_and_normalize(self, product: str, residual: str, dense: str, norm: str, output: str) -> str:
        inputs = [product, residual, self.weight(f"{norm}.weight"), self.weight(f"{norm}.bias")]
        inputs.append(self.weight(f"{dense}.bias"))
        return self.node("SkipLayerNormalization", inputs, output, MICROSOFT, epsilon=EPSILON)

    def layer(self, index: int, x: str) -> str:
        """One transformer layer over `x` of shape (tokens of the whole batch, 384)."""
        at = f"encoder.layer.{index}"
        parts = [f"{at}.attention.self.{part}" for part in ("query", "key", "value")]
        matrix = np.concatenate([self._weights[f"{part}.weight"] for part in parts])
        bias = np.concatenate([self._weights[f"{part}.bias"] for part in parts])
        product = self.linear(x, f"{at}.qkv", matrix)
        self.node("Reshape", [product, "shape_qkv"], f"{at}.qkv")
        halves = [f"{at}.q", f"{at}.k", f"{at}.v"]
        self._nodes.append(helper.make_node("Split", [f"{at}.qkv"], halves, axis=2, num_outputs=3))
        inputs = [*halves, self.constant(f"{at}.qkv.bias", bias), "mask_int32"]
        self.node("MultiHeadAttention", inputs, f"{at}.heads", MICROSOFT, num_heads=HEADS)
        self.node("Reshape", [f"{at}.heads", "rows"], f"{at}.context")
        attended = f"{at}.attention.output"
        product = self.linear(f"{at}.context", attended, self._weights[f"{attended}.dense.weight"])
        x = self.add_and_normalize(product, x, f"{attended}.dense", f"{attended}.LayerNorm", f"{at}.attended")
        wide = f"{at}.intermediate"
        product = self.linear(x, wide, self._weights[f"{wide}.dense.weight"])
        self.node("BiasGelu", [product, self.weight(f"{wide}.dense.bias")], f"{wide}.gelu", MICROSOFT)
        narrow = f"{at}.output"
        product = self.linear(f"{wide}.gelu", narrow, self._weights[f"{narrow}.dense.weight"])
        return self.add_and_normalize(product, x, f"{narrow}.dense", f"{narrow}.LayerNorm", f"{at}.x")

    def shapes(self, x: str) -> str:
        """Names the shapes the layers use and flattens `x` to (tokens of the whole batch, 384)."""
        self.node("Shape", ["input_ids"], "batch_and_length")
        for name, width in (("shape_qkv", 3 * DIMENSIONS), ("shape_x", DIMENSIONS)):
            last = self.constant(f"{name}.width", np.array([width], np.int64))
            self.node("Concat", ["batch_and_length", last], name, axis=0)
        self.constant("rows", np.array([-1, DIMENSIONS], np.int64))
        self.node("Cast", ["attention_mask"], "mask_int32", to=TensorProto.INT32)
        flat = self.node("Reshape", [x, "rows"], "x_rows")
        if self._quantized:
            self.node("Shape", [flat], "row_count", start=0, end=1)
            zero = numpy_helper.from_array(np.array([ZERO_POINT], np.uint8))
            self.node("ConstantOfShape", ["row_count"], "token_zero_points", value=zero)
        return flat

    def pool(self, x: str) -> str:
        """Mean over the tokens that count, scaled to norm 1. The divisor of the mean cancels in the norm."""
        self.node("Reshape", [x, "shape_x"], "last")
        self.node("Cast", ["attention_mask"], "mask_float", to=TensorProto.FLOAT)
        axis_2 = self.constant("axis_2", np.array([2], np.int64))
        self.node("Unsqueeze", ["mask_float", axis_2], "mask_column")
        self.node("Mul", ["last", "mask_column"], "masked")
        axis_1 = self.constant("axis_1", np.array([1], np.int64))
        self.node("ReduceMean", ["masked", axis_1], "pooled", keepdims=0)
        return self.node("LpNormalization", ["pooled"], "embedding", axis=1, p=2)

    def model(self) -> onnx.ModelProto:
        x = self.shapes(self.embeddings())
        for index in range(LAYERS):
            x = self.layer(index, x)
        output = self.pool(x)
        ids = [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"])
            for name in ("input_ids", "attention_mask")
        ]
        vectors = helper.make_tensor_value_info(output, TensorProto.FLOAT, ["batch", DIMENSIONS])
        graph = helper.make_graph(self._nodes, "minilm", ids, [vectors], list(self._constants.values()))
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid(MICROSOFT, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10, producer_name="remembrancer")


def _scale(matrix: Floats) -> Floats:
    """One step a row, so that the largest weight of the row becomes 127; shape (rows, 1)."""
    largest = np.abs(matrix).max(axis=1, keepdims=True) / np.float32(127)
    return np.where(largest > 0, largest, np.float32(1))


def build_graph(weights: Mapping[str, Floats], *, quantized: bool) -> onnx.ModelProto:
    """The model from its published float32 weights (safetensors names), quantized or as the reference."""
    return _Graph(weights, quantized).model()
