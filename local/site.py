"""The review page at /review/ as S3 and CloudFront serve it: strict CSP, nothing outside its folder."""

from __future__ import annotations

import mimetypes
import os.path
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from local.http import Headers, Request, Response

PREFIX: Final = "/review/"
SECURITY_HEADERS: Final[Headers] = (
    (
        "Content-Security-Policy",
        # As CloudFront sends it, without upgrade-insecure-requests: there is no TLS here.
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; "
        "connect-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'; "
        "require-trusted-types-for 'script'",
    ),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Frame-Options", "DENY"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Permissions-Policy", "camera=(), geolocation=(), microphone=()"),
)


class Site:
    """`generated` are files by name that only this run knows, such as the page's configuration."""

    def __init__(self, folder: Path, generated: Mapping[str, Callable[[Request], bytes]]) -> None:
        self._folder = folder.resolve()
        self._generated = generated

    async def handle(self, request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            return Response(405, b"", (("Allow", "GET, HEAD"), *SECURITY_HEADERS))
        if request.path == PREFIX.rstrip("/"):
            return Response(308, b"", (("Location", PREFIX), *SECURITY_HEADERS))
        name = unquote(request.path.removeprefix(PREFIX)) or "index.html"
        if name in self._generated:
            return _file(self._generated[name](request), name)
        if "\0" not in name:
            path = (self._folder / name).resolve()
            # os.path's is_file does not raise when the name is too long.
            if path.is_relative_to(self._folder) and os.path.isfile(path):  # noqa: PTH113
                return _file(path.read_bytes(), name)
        text = (
            b"Not found\n"
            if self._folder.is_dir()
            else b"The review page is not built: web/dist is missing\n"
        )
        return Response(404, text, (("Content-Type", "text/plain; charset=utf-8"), *SECURITY_HEADERS))


def _file(data: bytes, name: str) -> Response:
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    if kind.startswith("text/") or kind in ("application/javascript", "application/json"):
        kind += "; charset=utf-8"
    return Response(200, data, (("Content-Type", kind), ("Cache-Control", "no-cache"), *SECURITY_HEADERS))
