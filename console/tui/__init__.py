"""The terminal screens over one cockpit. Importing this package does not load Textual; running it does."""

from console.runner.view import Cockpit


def run(cockpit: Cockpit, *, title: str = "", coach: bool = False, readonly: bool = False) -> int:
    """Show the cockpit until the operator quits, then close it. Needs a terminal and no running event loop.

    title     pipeline or project, shown in the banner
    coach     show the line with the next keys
    readonly  refuse every action that changes a region
    returns   the exit code: 0, or 130, 143 and 129 after SIGINT, SIGTERM and SIGHUP
    """
    from console.tui.app import ConsoleApp
    from console.tui.terminal.loop import bounded_loop

    app = ConsoleApp(cockpit, title=title, coach=coach, readonly=readonly)
    with bounded_loop() as loop:
        app.run(loop=loop)
    return app.return_code or 0
