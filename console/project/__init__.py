"""regions/ and plans/ as values of the model. Costly modules are imported when a project is loaded."""

from dataclasses import dataclass
from pathlib import Path

from console.errors import Problem, Problems, UsageError
from console.model.pipeline import Pipeline
from console.model.region import Region
from console.project.names import did_you_mean

__all__ = ["Project", "find", "load"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A project's files as checked values.

    root      the project's folder, links resolved
    regions   in the order of waves, canaries first, then by name
    names     the pipelines', sorted
    desired   (pipeline, region) → the pipeline with that region's overrides
    declared  pipeline → as declared by its folder, without overrides
    """

    root: Path
    regions: tuple[Region, ...]
    names: tuple[str, ...]
    desired: dict[tuple[str, str], Pipeline]
    declared: dict[str, Pipeline]

    def pipeline(self, name: str | None, region: Region | None) -> Pipeline:
        """One pipeline as desired in one region, or without a region's overrides. name None: the only one.

        raises  UsageError
        """
        if name is None:
            if len(self.names) != 1:
                raise UsageError(
                    f"the project has {len(self.names)} pipelines", hint=f"--pipeline {_either(self.names)}"
                )
            name = self.names[0]
        if name not in self.names:
            raise UsageError(f"no pipeline is named `{name}`", hint=did_you_mean(name, self.names, "pipelines"))
        return self.declared[name] if region is None else self.desired[name, region.name]

    def region(self, name: str) -> Region:
        """raises UsageError"""
        for region in self.regions:
            if region.name == name:
                return region
        hint = did_you_mean(name, (region.name for region in self.regions), "regions")
        raise UsageError(f"no region is named `{name}`", hint=hint)

    def select(self, text: str) -> tuple[Region, ...]:
        """Regions as on the command line: `eu,us`, `@wave1`, `@canary`, `all`, or several of these.

        returns  each once, in the order of `regions`; at least one
        raises   UsageError
        """
        chosen: set[str] = set()
        for word in (part.strip() for part in text.split(",")):
            if word == "all":
                chosen |= {region.name for region in self.regions}
            elif word.startswith("@"):
                chosen |= {region.name for region in self.regions if word in region.groups}
                groups = {group for region in self.regions for group in region.groups}
                if word not in groups:
                    raise UsageError(f"no region belongs to `{word}`", hint=did_you_mean(word, groups, "groups"))
            elif word:
                chosen.add(self.region(word).name)
        if not chosen:
            raise UsageError("no region is chosen", hint="--regions eu,us, --regions @wave1 or --regions all")
        return tuple(region for region in self.regions if region.name in chosen)


def _either(names: tuple[str, ...]) -> str:
    return " or --pipeline ".join(names) if names else "NAME"


def find(start: Path) -> Path:
    """The project around a folder: the nearest one upward that holds regions/ and plans/, within its git repository.

    raises  UsageError
    """
    start = start.resolve()
    for folder in (start, *start.parents):
        if (folder / "regions").is_dir() and (folder / "plans").is_dir():
            return folder
        if (folder / ".git").exists():
            break
    raise UsageError(f"no project here: {start} and above hold no regions/ and plans/", hint="--project DIR")


def load(root: Path) -> Project:
    """Read and check everything: the inventory, and each pipeline as desired in each region.

    root    holds regions/ and plans/
    raises  Problems with every mistake, by file and line
    """
    from console.project.pipeline.desired import read_pipelines
    from console.project.regions import read_regions

    root = root.resolve()
    lacking = [name for name in ("regions", "plans") if not (root / name).is_dir()]
    if lacking:
        hint = "name the project's folder: --project DIR"
        raise Problems.of([Problem(code="P001", message=f"{root} holds no {name}/", hint=hint) for name in lacking])
    entries, problems = read_regions(root)
    desired, declared, wrong = read_pipelines(root, entries)
    if by_place := {(problem.where, problem.message): problem for problem in (*wrong, *problems)}:
        raise Problems.of(sorted(by_place.values(), key=_order))
    regions = (entry.region for entry in entries if entry.region)
    ordered = tuple(sorted(regions, key=lambda region: (region.wave, not region.canary, region.name)))
    return Project(root=root, regions=ordered, names=tuple(declared), desired=desired, declared=declared)


def _order(problem: Problem) -> tuple[str, int, int]:
    file, line, column = problem.where.rsplit(":", 2)
    return file, int(line), int(column)
