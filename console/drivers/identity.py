"""The identity of this console's user, from its environment. Recorded with every action, never trusted for access.

A CI's OIDC token is read, not verified: its signature concerns the system that grants access to the CI. So the source
always says "unverified", and the name is the claim of the token or of the CI's variables.

source  GitHub's "OpenID Connect reference" (sub, iss), its default variables; GitLab's `id_tokens` and predefined variables
"""

import base64
import binascii
import getpass
import os
import socket
from collections.abc import Mapping

from console.drivers.protocol import Who
from console.errors import DataError
from console.model import codec
from console.model.identity import Identity

# variables with a token: the first is ours to set; older GitLab runners set the others by themselves
TOKENS = ("CONSOLE_ID_TOKEN", "CI_JOB_JWT_V2", "CI_JOB_JWT")
_LONGEST = 1 << 16


def who(environment: Mapping[str, str] | None = None) -> Who:
    """`by` and host of all requests of this console."""
    host = socket.gethostname()
    return Who(str(identify(os.environ if environment is None else environment, host)), host)


def identify(environment: Mapping[str, str], host: str) -> Identity:
    """A CI's subject, from its token or else from its variables; else the login, with its origin over SSH."""
    for name in TOKENS:
        if subject := token(environment.get(name, "")):
            return subject
    if environment.get("GITHUB_ACTIONS") == "true" and (repository := environment.get("GITHUB_REPOSITORY")):
        actor, ref = environment.get("GITHUB_ACTOR", "unknown"), environment.get("GITHUB_REF", "unknown")
        return Identity(f"repo:{repository}:ref:{ref}:actor:{actor}", "GitHub Actions variables, unverified")
    if environment.get("GITLAB_CI") == "true" and (path := environment.get("CI_PROJECT_PATH")):
        login, ref = environment.get("GITLAB_USER_LOGIN", "unknown"), environment.get("CI_COMMIT_REF_NAME", "unknown")
        return Identity(f"project_path:{path}:ref:{ref}:user:{login}", "GitLab CI variables, unverified")
    name = f"{login_name()}@{host}"
    if origin := environment.get("SSH_CONNECTION", "").split():
        return Identity(name, f"SSH login from {origin[0]}")
    return Identity(name)


def token(text: str) -> Identity | None:
    """The subject and issuer of an OIDC token; None if there is no readable one."""
    parts = text.split(".")
    if len(parts) != 3 or len(text) > _LONGEST:
        return None
    try:
        claims = codec.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (binascii.Error, DataError, ValueError):
        return None
    match claims:
        case {"sub": str(subject), **rest} if subject:
            issuer = str(rest.get("iss", "an unnamed issuer")).removeprefix("https://").rstrip("/")
            return Identity(subject, f"OIDC of {issuer[:80]}, unverified")
    return None


def login_name() -> str:
    """The login's name; a container's numeric user may have none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
