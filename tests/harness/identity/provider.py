"""A small OpenID Connect provider on loopback, over TLS: discovery, authorization code with PKCE, signed ID tokens.

It asks nobody for a password: `person` says who is at the browser. `claims` go into every token, over the usual ones.
"""

import base64
import hashlib
import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from harness.identity.keys import Signer, make_certificate
from harness.waiting import wait_until

CLIENT = "fleetprof-webui"
SECRET = "the-secret-of-the-client"


class Issuer:
    """One issuer with one client."""

    def __init__(self, issuer: str, ca_file: Path) -> None:
        self.issuer = issuer
        self.ca_file = ca_file
        self.signer = Signer()
        self.person = "ann"
        self.groups: list[str] = []
        self.claims: dict[str, Any] = {}
        self._codes: dict[str, dict[str, str]] = {}
        self.app = Starlette(
            routes=[
                Route("/.well-known/openid-configuration", self._describe),
                Route("/keys", self._show_keys),
                Route("/authorize", self._authorize),
                Route("/token", self._give_token, methods=["POST"]),
                Route("/goodbye", self._say_goodbye),
                Route("/person", self._change_person),
            ]
        )

    def sign_in_as(self, person: str, *groups: str, **claims: Any) -> None:
        """Sets who is at the browser from now on."""
        self.person, self.groups, self.claims = person, list(groups), claims

    def make_token(self, **claims: Any) -> str:
        """An ID token of the person."""
        usual = {"iss": self.issuer, "aud": CLIENT, "sub": self.person, "groups": self.groups}
        return self.signer.sign(usual | self.claims | claims)

    async def _change_person(self, request: Request) -> Response:
        """`sign_in_as` for tests that are not in this process."""
        self.sign_in_as(request.query_params["name"], *filter(None, request.query_params.get("groups", "").split(",")))
        return JSONResponse(self.person)

    async def _describe(self, _request: Request) -> Response:
        return JSONResponse(
            {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "jwks_uri": f"{self.issuer}/keys",
                "end_session_endpoint": f"{self.issuer}/goodbye",
                "response_types_supported": ["code"],
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["RS256", "none", "HS256"],
                "code_challenge_methods_supported": ["S256"],
            }
        )

    async def _show_keys(self, _request: Request) -> Response:
        return JSONResponse(self.signer.public_keys())

    async def _authorize(self, request: Request) -> Response:
        query = dict(request.query_params)
        if query.get("client_id") != CLIENT or query.get("code_challenge_method") != "S256":
            return JSONResponse({"error": "invalid_request"}, status_code=400)
        code = secrets.token_urlsafe(16)
        self._codes[code] = query
        return RedirectResponse(f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}")

    async def _say_goodbye(self, request: Request) -> Response:
        query = dict(request.query_params)
        if query.get("client_id") != CLIENT or "id_token_hint" in query:
            return JSONResponse({"error": "invalid_request"}, status_code=400)
        return RedirectResponse(query["post_logout_redirect_uri"])

    async def _give_token(self, request: Request) -> Response:
        given = dict(parse_qsl((await request.body()).decode()))
        authorization = self._codes.pop(given.get("code", ""), None)
        expected = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        if request.headers.get("authorization") != f"Basic {expected}":
            return JSONResponse({"error": "invalid_client"}, status_code=401)
        digest = hashlib.sha256(given.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if (
            authorization is None
            or authorization["code_challenge"] != challenge
            or authorization["redirect_uri"] != given["redirect_uri"]
        ):
            return JSONResponse({"error": "invalid_grant"}, status_code=400)
        id_token = self.make_token(**{"nonce": authorization["nonce"]} | self.claims)
        return JSONResponse({"access_token": secrets.token_urlsafe(), "token_type": "Bearer", "id_token": id_token})


@contextmanager
def run_provider(folder: Path) -> Iterator[Issuer]:
    """A provider that answers, until the block ends."""
    certificate, key = make_certificate(folder)
    with socket.create_server(("127.0.0.1", 0)) as place:
        provider = Issuer(f"https://127.0.0.1:{place.getsockname()[1]}", certificate)
        server = uvicorn.Server(
            uvicorn.Config(provider.app, log_config=None, ssl_certfile=certificate, ssl_keyfile=key, lifespan="off")
        )
        thread = threading.Thread(target=server.run, kwargs={"sockets": [place]})
        thread.start()
        try:
            wait_until(lambda: server.started, "the identity provider")
            yield provider
        finally:
            server.should_exit = True
            thread.join()


def serve(issuer: str, certificate: Path, key: Path, port: int) -> None:
    """A provider of its own process, until that ends."""
    app = Issuer(issuer, certificate).app
    uvicorn.run(app, host="0.0.0.0", port=port, ssl_certfile=certificate, ssl_keyfile=key, lifespan="off")
