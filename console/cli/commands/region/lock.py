"""`console lock show` and `console lock force`: the agent that holds a region, and the forced end of a stuck one."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from console.cli.flags import command, refuse_readonly
from console.cli.output import Output
from console.cli.wiring import cli_context, open_project
from console.drivers.lock_holder import LockHolder, end, here, holder, lease_holder
from console.drivers.store_secrets import of_region
from console.errors import AtGate, ConsoleError, UsageError
from console.model.region import Region


@dataclass(frozen=True)
class HostRegion:
    """A region on this host or in a bucket, by its name or, without project files, by its warehouse alone."""

    name: str
    warehouse: str
    region: Region | None = None

    @property
    def in_bucket(self) -> bool:
        return "://" in self.warehouse

    def holder(self) -> LockHolder:
        return self._lease(force=False) if self.in_bucket else holder(Path(self.warehouse))

    def end(self, expected: LockHolder) -> None:
        if self.in_bucket:
            self._lease(force=True)
        else:
            end(Path(self.warehouse), expected)

    def _lease(self, *, force: bool) -> LockHolder:
        credentials = of_region(self.region) if self.region else {}
        try:
            return lease_holder(self.warehouse, force=force, credentials=credentials)
        except ConsoleError as error:
            if self.region and self.region.transport:  # a host that reaches the bucket for certain
                there = _there(self.region, "force" if force else "show")
                error.hint = f"{error.hint}; or {there}" if error.hint else there
            raise


@command(
    "lock",
    examples="console lock show\nconsole lock show --region eu\nconsole lock force --region eu\n"
    "console lock force --warehouse /srv/acme/eu",
)
@click.argument("what", type=click.Choice(["show", "force"]))
@click.option("--warehouse", metavar="PATH", help="Use no project files.")
def lock(what: str, warehouse: str | None) -> int:
    """Show which agent holds a region, or end it by force.

    The lock is held as long as the agent or its JVM lives: the lock of a dead process is free, that of a suspended one
    is not. Of a region in a bucket it is a lease: `force` takes it from its holder on any host, which then commits nothing any more. `force` asks for the region's name unless --yes is given, and kills the holder. Nothing is lost: the next
    agent continues from the same point. If the agent still answers, prefer `console follow --stop`.
    """
    output = Output(cli_context().flags)
    host_regions = _host_regions(warehouse, one=what == "force")
    if what == "force":
        _refuse_readonly()
        return _force(output, host_regions[0])
    return _show(output, host_regions)


def _host_regions(warehouse: str | None, *, one: bool) -> list[HostRegion]:
    if warehouse:
        if cli_context().flags.regions:
            raise UsageError("--warehouse and --region exclude each other", hint="give only one of them")
        place = warehouse.removeprefix("file://")
        place = place if "://" in place else str(Path(place).resolve())
        return [HostRegion(place, place)]
    project = open_project(one=one)
    host_regions = []
    for region in project.regions:
        target = HostRegion(region.name, region.warehouse.removeprefix("file://"), region)
        if not region.transport or target.in_bucket:  # a lease is read from any host that reaches its bucket
            host_regions.append(target)
        elif one or len(project.regions) == 1:
            raise UsageError(
                f"{region.name} is behind SSH: its lock is on {region.transport.host}",
                region=region.name,
                hint=_there(region, "show"),
            )
    return host_regions


def _there(region: Region, what: str) -> str:
    assert region.transport
    return f"on {region.transport.host}: console lock {what} --warehouse {shlex.quote(region.warehouse)}"


def _show(output: Output, host_regions: list[HostRegion]) -> int:
    holders: list[tuple[HostRegion, LockHolder]] = []
    errors: list[tuple[HostRegion, ConsoleError]] = []
    for target in host_regions:
        try:
            holders.append((target, target.holder()))
        except ConsoleError as error:
            errors.append((target, error))
    if output.json:
        output.document({"regions": [_data(target, now) for target, now in holders]})
    else:
        output.data("\n".join(_text(target, now) for target, now in holders))
    for target, fault in errors:
        output.print_error(fault, f"{target.name}: ")
    return max((fault.exit_code for _, fault in errors), default=0)


def _text(target: HostRegion, now: LockHolder) -> str:
    if not now.held:
        return f"{target.name}: free" + (f"; last held by {now.description}" if now.since else "")
    state = " (stopped)" if now.stopped else ""
    others = ", ".join(str(pid) for pid, _ in now.processes if pid != now.pid)
    jvm = f"; also held open by {others}" if others else ""
    where = "" if target.in_bucket or here(now) else ", on another host"
    return f"{target.name}: held by {now.description}{state}{jvm}{where}"


def _data(target: HostRegion, now: LockHolder) -> dict[str, Any]:
    return {
        "region": target.name,
        "held": now.held,
        "pid": now.pid,
        "host": now.host,
        "since": now.since,
        "tool": now.tool,
        "stopped": now.stopped,
        "processes": [{"pid": pid, "state": state} for pid, state in now.processes],
    }


def _force(output: Output, target: HostRegion) -> int:
    now = target.holder()
    if now.held:
        _confirm(output, target, now)
        target.end(now)
        output.info(f"{target.name}: ended {now.description}; the next agent continues its work")
    if output.json:
        output.document(
            {"region": target.name, "ended": now.held, "pid": now.pid, "host": now.host, "since": now.since}
        )
    else:
        output.data(f"{target.name}: free" if now.held else f"{target.name}: free already, nothing to end")
    return 0


def _confirm(output: Output, target: HostRegion, now: LockHolder) -> None:
    """raises  AtGate unless a person typed the region's name, or --yes was given"""
    if output.flags.yes:
        return
    hint = f"console lock force --region {target.name} --yes"
    if not output.may_ask:
        raise AtGate(f"{target.name}: ending {now.description} needs confirmation", region=target.name, hint=hint)
    question = f"{now.description} is ended by force; type {target.name} to continue"
    if click.prompt(question, default="", show_default=False, err=True).strip() != target.name:
        raise AtGate(f"{target.name}: not done: another name was typed", region=target.name, hint=hint)


def _refuse_readonly() -> None:
    refuse_readonly(click.get_current_context(), "lock force")
