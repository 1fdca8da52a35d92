"""Since when conditions say what they say: since their object came, or since what had them turn."""

from __future__ import annotations

from apiserver.model.commits import own
from apiserver.model.conditions import Condition, condition
from reconciler.plan import turned
from reconciler.plan.summary import Summary
from reconciler.plan.turned import Now

BORN = "2026-01-01T00:00:00Z"
LABEL = turned.named("APIBinding", "widgets")


def at(minute: int) -> Now:
    return Now(f"{minute:040}", f"2026-01-01T00:{minute:02}:00Z")


class Story:
    """One object, judged again and again; `known` goes through what the status branch has of it, which keeps what stood
    before a step as long as that may go on."""

    def __init__(self, **begins: bool | None) -> None:
        self.known = Summary(own("a" * 40))
        self.stored = turned.recorded(self.known, LABEL, told(**begins), BORN)

    def says(self, now: Now, **kinds: bool | None) -> dict[str, str]:
        """What it says from now on; the times."""
        self.known = Summary.from_json(self.known.as_json())
        self.stored = turned.timed(self.known, now, LABEL, told(**kinds), self.stored, BORN)
        found = {each["type"]: each["lastTransitionTime"] for each in self.stored}
        again = turned.recorded(self.known, LABEL, told(**kinds), BORN)
        assert again == self.stored, "a recovery has the same"
        return found


def told(**kinds: bool | None) -> list[Condition]:
    return [condition(kind, status) for kind, status in kinds.items()]


def test_what_says_the_same_is_as_old_as_its_object_and_costs_nothing() -> None:
    story = Story(Ready=True)
    assert story.says(at(1), Ready=True) == {"Ready": BORN}
    assert story.known.as_json() == {"origin": "a" * 40}


def test_what_turns_bears_the_time_of_what_had_it_turn() -> None:
    story = Story(Ready=True, Valid=True)
    assert story.says(at(1), Ready=True, Valid=False) == {"Ready": BORN, "Valid": at(1).time}
    assert story.says(at(2), Ready=True, Valid=False) == {"Ready": BORN, "Valid": at(1).time}
    assert story.known.turned == {LABEL: {"Valid": at(1).time}}
    assert story.says(at(3), Ready=False, Valid=True) == {"Ready": at(3).time, "Valid": at(3).time}
    assert story.says(at(4), Ready=None, Valid=True) == {"Ready": at(4).time, "Valid": at(3).time}


def test_what_turns_back_within_a_step_never_turned() -> None:
    story = Story(Ready=True, Valid=True)
    story.says(at(1), Ready=False, Valid=True)
    story.says(at(2), Ready=True, Valid=True)
    before = story.known.turned
    assert story.says(at(3), Ready=False, Valid=False) == {"Ready": at(3).time, "Valid": at(3).time}
    assert story.says(at(3), Ready=True, Valid=False) == {"Ready": at(2).time, "Valid": at(3).time}
    assert story.says(at(3), Ready=True, Valid=True) == {"Ready": at(2).time, "Valid": BORN}
    assert story.known.turned == before
    assert story.says(at(3), Ready=False, Valid=True) == {"Ready": at(3).time, "Valid": BORN}
    assert story.says(at(4), Ready=True, Valid=True) == {"Ready": at(4).time, "Valid": BORN}


def test_what_is_said_for_the_first_time_turned() -> None:
    story = Story(Ready=True)
    assert story.says(at(1), Ready=True, Supported=False) == {"Ready": BORN, "Supported": at(1).time}
    assert story.says(at(2), Ready=True) == {"Ready": BORN}
    assert story.known.turned == {}
    assert story.says(at(3), Ready=True, Supported=False) == {"Ready": BORN, "Supported": at(3).time}


def test_what_something_else_wrote_counts() -> None:
    """A controller that found that names are free, say."""
    story = Story(Ready=False)
    story.stored = [condition("Ready", True, at=at(7).time)]
    assert story.says(at(9), Ready=True) == {"Ready": at(7).time}


def test_what_is_forgotten_begins_anew() -> None:
    story = Story(Ready=True, Valid=True)
    story.says(at(1), Ready=False, Valid=True)
    turned.forget(story.known, LABEL)
    turned.forget(story.known, "APIBinding/another")
    assert story.known.turned == {}
    story.stored = turned.recorded(story.known, LABEL, told(Ready=False, Valid=True), BORN)
    assert story.says(at(1), Ready=True, Valid=True) == {"Ready": at(1).time, "Valid": BORN}
