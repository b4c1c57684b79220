"""The bugs with which the tests of regions and readers elsewhere were seen to fail."""

from tests.faults.planted import Mutant

REMOTE, LOCAL, RELEASE = "console/drivers/ssh/remote.py", "console/drivers/local.py", "console/release.py"
_STARTED = "tests/ssh/test_bucket.py::test_credentials_that_are_looked_up_here_open_the_bucket_there"
_OWN = "tests/ssh/test_bucket.py::test_a_host_with_a_profile_of_its_own_needs_no_secrets"
_LIMITED = "tests/ssh/test_bucket.py::test_a_key_that_is_limited_to_a_folder_of_a_bucket_reaches_no_other"
_FOLLOWED = "tests/ssh/test_bucket_rollout.py::test_a_region_in_a_bucket_is_promoted_followed_and_read_with_its_agent_on_another_host"
_ROLLED_OUT = "tests/ssh/test_bucket_rollout.py::test_a_change_is_rolled_out_there_and_taken_back_while_a_program_reads"
_READ = "tests/objects/test_open_release.py::test_a_release_in_a_bucket_is_read_by_the_profile_of_a_reader_and_without_its_host"
_CLOSED = "tests/objects/test_open_release.py::test_a_bucket_that_does_not_open_says_so_promptly_and_with_where_credentials_come_from"
_SHARED = "tests/project/test_warehouses_and_values.py::test_two_regions_never_share_a_warehouse_however_it_is_spelt"


def bug(name: str, file: str, old: str, new: str, test: str) -> Mutant:
    return Mutant(name, test, file, old, new)


MUTANTS: tuple[Mutant, ...] = (
    bug("a far host is asked without credentials", REMOTE, "raw_answers([ask], dict(request.credentials))", "raw_answers([ask])", _STARTED),
    bug("a far agent is started without credentials", REMOTE, "config, dict(request.credentials))", "config)", _STARTED),
    bug("a far column is read without credentials", REMOTE, "sample, dict(request.credentials))", "sample)", _STARTED),
    bug("doctor asks a far host without credentials", REMOTE, "lease_holder(request.warehouse, credentials=dict(request.credentials))", "lease_holder(request.warehouse)", _STARTED),
    bug("a bucket is not looked at from its agent's host", REMOTE, "        checked.append(await asyncio.to_thread(_bucket_answers, request))\n", "        pass\n", _OWN),
    bug("a profile opens no column", "console/agent/__main__.py", "        if in_bucket(table):\n", "        if False:\n", _OWN),
    bug("a lease that cannot be read here is read nowhere", "console/cli/commands/region/lock.py", "            if self.region and self.region.transport:", "            if False:", _OWN),
    bug("a limited key reaches every folder of a bucket", REMOTE, "    if only and _place(request.warehouse)", "    if only and local_path(request.warehouse) and _place(request.warehouse)", _LIMITED),
    bug("a folder of a bucket may lead elsewhere", REMOTE, 'elif {".", ".."} &', "elif set[str]() &", _LIMITED),
    bug("credentials set any variable of a far process", REMOTE, "if given.keys() - _CREDENTIALS or any", "if any", _LIMITED),
    bug("a release in a bucket is of its agent's host", RELEASE, "if known.transport and isinstance(place, Path):", "if known.transport:", _READ),
    bug("a reader's profile opens no list of releases", RELEASE, '_live(f"{warehouse}/_console/{pipeline}/releases", _credentials(warehouse))', '_live(f"{warehouse}/_console/{pipeline}/releases", {})', _READ),
    bug("a reader's profile opens no data", "console/stores/lakes/delta_rows.py", 'options.get("aws_session_token", "")', '""', _READ),
    bug("a closed bucket is an error of the library's", RELEASE, "    except (DeltaError, OSError) as error:", "    except ZeroDivisionError as error:", _CLOSED),
    bug("two hosts share a folder of a bucket", "console/project/regions.py", "if region.transport and not in_store else", "if region.transport else", _SHARED),
    bug("an open release never follows a promotion", RELEASE, "        return _open(self.warehouse, self.manifest.pipeline)", "        return self", _ROLLED_OUT),
    bug("a far agent's Spark gets no credentials", LOCAL, "environment = agent_environment(credentials=await self._credentials())", "environment = agent_environment()", _FOLLOWED),
)  # fmt: skip
