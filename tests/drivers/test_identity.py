"""The recorded author of a decision, and its source."""

import base64
import json

import pytest

from console.drivers.identity import identify, login_name, who
from console.model.identity import AGENT, OS_USER, AgentReason, Identity, by_agent, identity


def jwt(claims: object) -> str:
    """A token as a CI hands it out, but signed by nobody."""
    parts = ({"alg": "RS256"}, claims, "signature")
    return ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)


MAIN = "repo:acme/web:ref:refs/heads/main"
GITHUB = {
    "GITHUB_ACTIONS": "true",
    "GITHUB_REPOSITORY": "acme/web",
    "GITHUB_REF": "refs/heads/x",
    "GITHUB_ACTOR": "ada",
}
GITLAB = {"GITLAB_CI": "true", "CI_PROJECT_PATH": "acme/web", "CI_COMMIT_REF_NAME": "x", "GITLAB_USER_LOGIN": "ada"}


@pytest.mark.parametrize(
    ("environment", "name", "source"),
    [
        ({}, f"{login_name()}@here", OS_USER),
        ({"SSH_CONNECTION": "192.0.2.7 50022 198.51.100.1 22"}, f"{login_name()}@here", "SSH login from 192.0.2.7"),
        (GITHUB, "repo:acme/web:ref:refs/heads/x:actor:ada", "GitHub Actions variables, unverified"),
        (GITLAB, "project_path:acme/web:ref:x:user:ada", "GitLab CI variables, unverified"),
        (
            {**GITHUB, "CONSOLE_ID_TOKEN": jwt({"sub": MAIN, "iss": "https://token.actions.githubusercontent.com"})},
            MAIN,
            "OIDC of token.actions.githubusercontent.com, unverified",
        ),
        (
            {**GITLAB, "CI_JOB_JWT_V2": jwt({"sub": "project_path:acme/web", "iss": "https://gitlab.example.com/"})},
            "project_path:acme/web",
            "OIDC of gitlab.example.com, unverified",
        ),
        ({"CONSOLE_ID_TOKEN": jwt({"sub": "x"})}, "x", "OIDC of an unnamed issuer, unverified"),
    ],
)
def test_the_surest_name_the_environment_gives_is_taken_with_its_source(
    environment: dict[str, str], name: str, source: str
) -> None:
    assert identify(environment, "here") == Identity(name, source)
    assert identity(str(identify(environment, "here"))) == Identity(name, source)


@pytest.mark.parametrize(
    "text",
    ["", "a.b", "a.b.c", "a.!!!.c", jwt([1]), jwt({"sub": 1}), jwt({"sub": ""}), "a." + "A" * 70_000 + ".c", "é.é.é"],
)
def test_what_is_no_token_is_passed_over(text: str) -> None:
    assert identify({"CONSOLE_ID_TOKEN": text}, "here").source == OS_USER


def test_a_name_can_pretend_no_source_and_steer_nothing() -> None:
    forged = Identity("eve (OIDC of gitlab.example.com, unverified)\x1b[31m")
    read = identity(str(forged))
    assert read == Identity("eve [OIDC of gitlab.example.com, unverified]?[31m", OS_USER)
    assert len(str(Identity("x" * 10_000, "y" * 10_000))) < 400


def test_names_of_ledgers_from_before_and_of_the_agent_itself_are_read() -> None:
    assert identity("ada@laptop") == Identity("ada@laptop", OS_USER)
    assert identity("the agent, 72 h after the failure").source == AGENT
    assert identity(by_agent(AgentReason.CONSOLE_LEFT)).source == AGENT
    assert identity(f"{Identity('ada', 'SSH login from 192.0.2.7')} from laptop") == Identity(
        "ada from laptop", "SSH login from 192.0.2.7"
    )


def test_a_consoles_requests_carry_the_name_with_its_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONSOLE_ID_TOKEN", jwt({"sub": MAIN, "iss": "https://ci.example.com"}))
    assert who().name == f"{MAIN} (OIDC of ci.example.com, unverified)"
