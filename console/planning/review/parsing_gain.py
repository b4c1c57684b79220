"""Share of a batch's processor time that one `from_json` saved in place of so many `get_json_object`. Written by `tests/bench/test_parsing.py`."""

GAIN: dict[int, float] = {3: 0.349, 6: 0.495, 12: 0.611}
