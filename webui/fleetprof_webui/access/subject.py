"""A person as the Kubernetes API server calls them, from the claims of a token.

Guarantees: pure; names are mapped as the API server's flags `--oidc-username-claim`, `--oidc-username-prefix`,
`--oidc-groups-claim` and `--oidc-groups-prefix` map them; nobody becomes a `system:` user or a member of a `system:`
group, whatever a token says. Source: Kubernetes, "Authenticating", OpenID Connect tokens.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fleetprof_api.errors import FleetprofError

_MOST_GROUPS: Final = 1000
_MOST_NAME: Final = 512
_RESERVED: Final = "system:"
_NO_PREFIX: Final = "-"


class UnusableClaims(FleetprofError):
    """The claims name nobody; the message says why, and holds no claim."""


@dataclass(frozen=True, slots=True)
class Subject:
    """User and groups."""

    name: str
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClaimNames:
    """The claims that name a person, and what is put before them.

    `username_prefix` "": the issuer and # before every claim but `email`, as the API server does; "-": nothing.
    `groups_claim` "": people have no groups.
    """

    issuer: str
    username_claim: str = "sub"
    username_prefix: str = ""
    groups_claim: str = ""
    groups_prefix: str = ""

    def read_subject(self, claims: Mapping[str, Any]) -> Subject:
        """The person of whom the claims speak. Raises UnusableClaims."""
        name = claims.get(self.username_claim)
        if not isinstance(name, str) or not name or len(name) > _MOST_NAME:
            raise UnusableClaims(f"the token's claim {self.username_claim} is no name")
        if self.username_claim == "email" and claims.get("email_verified", True) is not True:
            raise UnusableClaims("the identity provider has not verified the email address")
        subject = Subject(
            self._user_prefix() + name, tuple(self.groups_prefix + group for group in self._groups(claims))
        )
        for each in (subject.name, *subject.groups):
            if each.startswith(_RESERVED):
                raise UnusableClaims(f"the token speaks of a name that begins with {_RESERVED}; a prefix prevents that")
            if not each.isprintable():
                raise UnusableClaims("the token holds a name that cannot be printed")
        return subject

    def _user_prefix(self) -> str:
        if self.username_prefix == _NO_PREFIX:
            return ""
        if self.username_prefix or self.username_claim == "email":
            return self.username_prefix
        return f"{self.issuer}#"

    def _groups(self, claims: Mapping[str, Any]) -> list[str]:
        found = claims.get(self.groups_claim) if self.groups_claim else None
        groups = [found] if isinstance(found, str) else found or []
        if not isinstance(groups, list) or len(groups) > _MOST_GROUPS:
            raise UnusableClaims(f"the token's claim {self.groups_claim} is no list of groups")
        if not all(isinstance(group, str) and 0 < len(group) <= _MOST_NAME for group in groups):
            raise UnusableClaims(f"the token's claim {self.groups_claim} is no list of groups")
        return groups
