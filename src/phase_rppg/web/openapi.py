"""The OpenAPI description of the service, which a test compares with its behaviour."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import __version__
from ..measurement.measure import choices

if TYPE_CHECKING:
    from .service import ServiceLimits


def describe(*, needs_token: bool, limits: ServiceLimits) -> dict[str, Any]:
    """Return the OpenAPI document."""
    found: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "phase-rppg",
            "version": __version__,
            "description": "Measures the heart rate in a face video. Not a medical device.",
        },
        "paths": {
            "/v1/measure": {"post": _measure(limits)},
            "/healthz": {"get": _get("Whether the service accepts work", "application/json", security=[])},
            "/metrics": {"get": _get("Counters in the text format of Prometheus", "text/plain")},
            "/openapi.json": {"get": _get("This document", "application/json")},
        },
        "components": {"schemas": {"Error": _ERROR, "Result": _RESULT}},
    }
    if needs_token:
        found["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        found["security"] = [{"token": []}]
    return found


_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {"error": {"type": "string", "description": "what is wrong, and what to do"}},
}
_RESULT = {
    "type": "object",
    "description": "The document of `phase measure --json`; docs/measure.schema.json has all fields.",
    "required": ["schema_version", "video", "duration_s", "method", "faces", "warnings"],
    "properties": {
        "schema_version": {"type": "integer"},
        "video": {"type": "string"},
        "duration_s": {"type": "number"},
        "method": {"type": "string"},
        "faces": {"type": "array", "items": {"type": "object", "required": ["id", "summary", "windows"]}},
        "warnings": {"type": "array", "items": {"type": "string"}},
        "reason": {"type": "string"},
    },
}


def _measure(limits: ServiceLimits) -> dict[str, Any]:
    binary = {"schema": {"type": "string", "format": "binary", "minLength": 1}}
    problems = {
        400: "a parameter is wrong, or the body is empty",
        401: "the token is missing or wrong",
        408: f"the video did not arrive within {limits.seconds:g} s",
        413: f"the video is larger than {limits.mb:g} MB",
        415: "the body is not a video",
        421: "the host name is not that of this machine",
        422: "the video cannot be decoded",
        503: "too many requests at once",
        504: f"the video was not measured within {limits.seconds:g} s",
    }
    answers = {str(status): _error(text) for status, text in problems.items()}
    answers["200"] = {
        "description": "The result; a missing reading has a reason",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Result"}}},
    }
    seconds = {"type": "number", "minimum": 6, "maximum": 300}
    parameters = {
        "model": ({"type": "string", "enum": choices()}, "method or bundled network"),
        "window": (seconds, "length of a window in seconds"),
        "step": ({"type": "number", "minimum": 0.1, "maximum": 6}, "time between two windows"),
        "ungated": ({"type": "boolean"}, "show the rate of every window"),
        "full": ({"type": "boolean"}, "add the waveform and the beats"),
    }
    return {
        "summary": "Measure the heart rate in a video",
        "operationId": "measure",
        "parameters": [
            {"name": name, "in": "query", "schema": schema, "description": text}
            for name, (schema, text) in parameters.items()
        ],
        "requestBody": {
            "required": True,
            "description": f"The video file, at most {limits.mb:g} MB",
            "content": {"video/mp4": binary, "application/octet-stream": binary},
        },
        "responses": dict(sorted(answers.items())),
    }


def _get(summary: str, media_type: str, **settings: Any) -> dict[str, Any]:
    schema = {"type": "object"} if media_type == "application/json" else {"type": "string"}
    return {
        "summary": summary,
        "responses": {
            "200": {"description": summary, "content": {media_type: {"schema": schema}}},
            "401": _error("the token is missing or wrong"),
            "421": _error("the host name is not that of this machine"),
        },
        **settings,
    }


def _error(text: str) -> dict[str, Any]:
    reference = {"$ref": "#/components/schemas/Error"}
    return {"description": text, "content": {"application/json": {"schema": reference}}}
