"""The gate of a fake region: what people declare there, and whether it is open, by the rules of the real agent."""

from dataclasses import replace

from console.drivers.fake.disk import FakeDisk
from console.drivers.protocol import Who
from console.errors import Conflict
from console.model.consent import NO_RULES, Declaration, declared_text
from console.model.event import Logged
from console.model.gate import Gate, gate_of, objection_to
from console.model.status import Status


def gate_at(disk: FakeDisk) -> Gate:
    return gate_of(disk.status, disk.plan.gate if disk.plan else NO_RULES)


def opens_itself(disk: FakeDisk) -> bool:
    return disk.plan is not None and disk.plan.gate.auto and gate_at(disk).opens_itself


def declare(disk: FakeDisk, rollout: str, declared: Declaration, who: Who) -> Status:
    """Store a declaration once. raises  as `agent.rollout.declared.declare`"""
    signed = replace(declared, by=who.name, host=who.host)
    if disk.status.rollout != rollout:
        raise Conflict(f"{disk.region}: {rollout} is not at the gate", hint="console status", code="E_STATE")
    if objection := objection_to(disk.status, signed, disk.region):
        raise objection
    if not disk.status.consent.holds(signed):
        disk.keep(Logged(declared_text(signed), "info", signed))
    return disk.status
