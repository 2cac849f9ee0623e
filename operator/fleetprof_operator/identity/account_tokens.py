"""Callers that asked the API server for a token of one service account: whoever may, and nobody else.

The account has no rights. A Role that lets people create its tokens (`serviceaccounts/token`) is the right to what we
guard with it, and is the only one that the API server's proxy carries to us: it takes the person's own away.

Guarantees: checked offline, so that words that are no tokens keep nobody busy; a token counts until it ends.
"""

from fleetprof_operator.hub.access.authentication import CannotAuthenticate
from fleetprof_operator.identity.issuer_keys import IssuerKeys


class AccountTokens:
    """Tokens of the account `namespace`/`name` for the audience of `keys`."""

    def __init__(self, keys: IssuerKeys, *, namespace: str, name: str) -> None:
        self._keys = keys
        self._subject = f"system:serviceaccount:{namespace}:{name}"

    async def admit(self, token: str) -> bool | None:
        """Tells whether the token is one of them; None when nobody can tell now."""
        try:
            claims = await self._keys.verify(token)
        except CannotAuthenticate:
            return None
        return claims is not None and claims.get("sub") == self._subject
