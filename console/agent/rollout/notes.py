"""Notes of operators: stored with the newest rollout, in any state."""

from console.agent.rollout.ownership import OwnedPipeline
from console.errors import Conflict
from console.model.event import Logged
from console.model.note import Noted, note_text
from console.model.status import Status
from console.text import safe_text

NAME_CHARACTERS = 200


def leave_note(controller: OwnedPipeline, text: str, by: str, host: str) -> Status:
    """Store a note, as a log line that older versions can read, too. A repeated request is stored once.

    raises  DataError E_RANGE for an empty or too long note; Conflict E_STATE if the pipeline has had no rollout
    """
    noted = Noted(by=safe_text(by, NAME_CHARACTERS), host=safe_text(host, NAME_CHARACTERS), text=note_text(text))
    with controller.lock:
        recorder = controller.recorder
        if not recorder.rollout:
            raise Conflict(
                f"{controller.pipeline}: a note is kept with a rollout, and there has been none",
                hint="console apply",
                code="E_STATE",
            )
        last = recorder.status.notes[-1:]
        if not any((note.by, note.host, note.text) == (noted.by, noted.host, noted.text) for note in last):
            recorder.store(Logged(f"note by {noted.by} from {noted.host}: {noted.text}", "info", noted))
        return recorder.status
