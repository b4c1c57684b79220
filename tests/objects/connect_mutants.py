"""Bugs of a region whose Spark is behind Spark Connect, each with the test that must fail on it. Run by `tests/faults/mutants`."""

from tests.faults.planted import Mutant

HERE = "tests/agent/test_connect.py"
SERVED = "tests/objects/test_region_on_connect.py"
HANDLE = "console/agent/connect/handle.py"

MUTANTS = (
    Mutant("a region behind Spark Connect starts a JVM of its own", f"{SERVED}::test_the_live_release_is_read_without_a_jvm_of_the_agents_own",
           "console/agent/region_agent.py", "ConnectHandle(settings, warehouse) if settings.remote", "ConnectHandle(settings, warehouse) if settings.remote == '*'"),
    Mutant("feeds go through Spark Connect", f"{SERVED}::test_whatever_else_a_region_does_is_refused_by_name", HANDLE,
           '        """raises  RegionError E_CONNECT"""\n        self._refuse()\n\n    def passing',
           '        return sessions.open_session(self._settings.remote, self._settings.conf)\n\n    def passing'),
    Mutant("a server is left to bind parameters", f"{SERVED}::test_the_live_release_is_read_without_a_jvm_of_the_agents_own", HANDLE,
           "session.sql(statement(sql, args))", "session.sql(sql, args=dict(args))"),
    Mutant("a server that may be elsewhere gets a disk", HERE, "console/agent/connect/sessions.py",
           "if not isinstance(warehouse, ObjectPath):", "if not warehouse:"),
    Mutant("a token stands in a file", "tests/model/test_connect_address.py", "console/model/connect_address.py",
           'named["name"] in _OURS or secret(named["name"])', 'secret(named["name"])'),
)  # fmt: skip
