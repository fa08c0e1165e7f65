"""Check an ONNX file before ONNX Runtime opens it: no loops, no custom operators, no external files.

A graph without control flow runs in bounded time. The check reads the protocol buffer itself, because the
package `onnx` is optional, and skips the values of the weights. Field numbers are those of `onnx.proto`.
"""

from __future__ import annotations

from collections.abc import Iterator

_MODEL_GRAPH, _MODEL_FUNCTION = 7, 25
_GRAPH_NODE, _GRAPH_INITIALIZER, _GRAPH_SPARSE = 1, 5, 15
_NODE_OPERATOR, _NODE_ATTRIBUTE, _NODE_DOMAIN = 4, 5, 7
_ATTRIBUTE_TENSOR, _ATTRIBUTE_GRAPH, _ATTRIBUTE_TENSORS, _ATTRIBUTE_GRAPHS = 5, 6, 10, 11
_TENSOR_EXTERNAL, _TENSOR_LOCATION = 13, 14
_CONTROL_FLOW = {"Loop", "Scan", "If", "SequenceMap"}
_STANDARD_DOMAINS = {"", "ai.onnx"}
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MAX_VARINT_BYTES = 10


class UnsafeGraph(ValueError):
    """The graph is damaged, or it has a part that is not accepted."""


def check_graph(model: bytes) -> None:
    """Raise UnsafeGraph if the model has control flow, functions, custom operators or external data."""
    graphs = 0
    for number, value in _fields(memoryview(model)):
        if number == _MODEL_FUNCTION:
            raise UnsafeGraph("it defines functions, which are not accepted")
        if number == _MODEL_GRAPH:
            graphs += 1
            _check_nodes(_as_bytes(value))
    if graphs != 1:
        raise UnsafeGraph("it has no graph")


def _check_nodes(graph: memoryview) -> None:
    for number, value in _fields(graph):
        if number == _GRAPH_INITIALIZER:
            _check_tensor(_as_bytes(value))
        elif number == _GRAPH_SPARSE:
            raise UnsafeGraph("it has sparse weights, which are not accepted")
        elif number == _GRAPH_NODE:
            _check_node(_as_bytes(value))


def _check_node(node: memoryview) -> None:
    operator = domain = ""
    for number, value in _fields(node):
        if number == _NODE_OPERATOR:
            operator = _as_text(value)
        elif number == _NODE_DOMAIN:
            domain = _as_text(value)
        elif number == _NODE_ATTRIBUTE:
            _check_attribute(_as_bytes(value))
    if operator in _CONTROL_FLOW:
        raise UnsafeGraph(f"it uses {operator}, whose running time has no bound")
    if domain not in _STANDARD_DOMAINS:
        raise UnsafeGraph("it uses a custom operator, which is not accepted")


def _check_attribute(attribute: memoryview) -> None:
    for number, value in _fields(attribute):
        if number in (_ATTRIBUTE_GRAPH, _ATTRIBUTE_GRAPHS):
            raise UnsafeGraph("it has graphs inside operators, whose running time has no bound")
        if number in (_ATTRIBUTE_TENSOR, _ATTRIBUTE_TENSORS):
            _check_tensor(_as_bytes(value))


def _check_tensor(tensor: memoryview) -> None:
    for number, value in _fields(tensor):
        if number == _TENSOR_EXTERNAL or (number == _TENSOR_LOCATION and value):
            raise UnsafeGraph("it reads weights from another file, which is not accepted")


def _fields(data: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Yield the number and the value of every field of a message."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            value: int | memoryview
            value, at = _varint(data, at)
        elif kind in (_FIXED64, _FIXED32, _BYTES):
            size = 8 if kind == _FIXED64 else 4
            if kind == _BYTES:
                size, at = _varint(data, at)
            if size > len(data) - at:
                raise UnsafeGraph("the file is damaged")
            value, at = data[at : at + size], at + size
        else:
            raise UnsafeGraph("the file is damaged")
        yield number, value


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = 0
    for position in range(_MAX_VARINT_BYTES):
        if at + position >= len(data):
            break
        byte = data[at + position]
        value |= (byte & 0x7F) << 7 * position
        if byte < 0x80:
            return value, at + position + 1
    raise UnsafeGraph("the file is damaged")


def _as_bytes(value: int | memoryview) -> memoryview:
    if isinstance(value, int):
        raise UnsafeGraph("the file is damaged")
    return value


def _as_text(value: int | memoryview) -> str:
    return bytes(_as_bytes(value)[:200]).decode("utf-8", "replace")
