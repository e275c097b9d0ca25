"""Images that are refused, before they are sent and by the API."""

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm_agent.context import media_check
from fsm_agent.context.media import removal, without_media
from fsm_agent.context.media_check import MAX_IMAGE_CHARS, checked_media, pixels
from fsm_agent.context.view import Draft, apply_edits
from fsm_agent.session.history import History
from fsm_agent.session.message import media_of
from fsm_agent.session.validator import violations
from tests.context.views import view
from tests.session.histories import (
    MODELS,
    assistant,
    call,
    histories,
    image,
    png,
    refusal,
    result,
    text,
    thinking,
    user,
)
from tests.session.noting import noting

DOCUMENT = {"type": "document", "source": {"type": "url", "url": "https://example.org/a.pdf"}}
ERROR = "messages.{}.content.{}.{}: image exceeds 5 MB maximum"


def places(history):
    return [(index, *where[:2]) for index, entry in enumerate(history) for where in media_of(entry.message)]


def removed(history, error, model=None):
    """Where media were taken away."""
    before = places(history)
    apply_edits(history, removal(history, error, model))
    assert violations(history.messages) == []
    return sorted(set(before) - set(places(history)), key=str)


SHOTS = [
    user(text("see"), image(), image()),
    assistant(call("a"), call("b")),
    user(result("a", [text("x"), image(), image(png(9, 9))]), result("b", [image()])),
    assistant("ok"),
    user("on"),
    user(text("and"), DOCUMENT),
]


# ---- by the API


@pytest.mark.parametrize(
    ("error", "where"),
    [
        (ERROR.format(0, 2, "image.source.base64"), [(0, 2, None)]),
        (ERROR.format(2, 1, "tool_result.content.0.image"), [(2, 1, 0)]),
        (ERROR.format(2, 0, "tool_result.image"), [(2, 0, 2)]),
        (ERROR.format(5, 1, "document"), [(5, 1, None)]),
        (ERROR.format(4, 2, "document"), [(5, 1, None)]),
        ("Could not process image", [(5, 1, None)]),
        (ERROR.format(3, 0, "image"), [(5, 1, None)]),
        (ERROR.format(99, 0, "image"), [(5, 1, None)]),
    ],
    ids=[
        "as sent",
        "inside a result",
        "a result, so its largest",
        "a document",
        "joined",
        "no place",
        "text",
        "beyond",
    ],
)
def test_what_the_error_names_is_removed_else_the_newest(error, where):
    history = History(SHOTS)
    assert removed(history, error) == where


def test_the_note_is_in_the_same_place_of_the_same_result():
    history = History(SHOTS)
    removed(history, ERROR.format(2, 1, "tool_result.content.0.image"))
    note = text(
        "[Image removed: the API refused it "
        "(messages.2.content.1.tool_result.content.0.image: image exceeds 5 MB maximum).]"
    )
    assert history.messages[2]["content"][1] == result("b", [note])
    assert history.messages[2]["content"][0] == SHOTS[2]["content"][0]


def test_messages_that_the_model_was_not_sent_are_not_counted():
    foreign = assistant({"type": "redacted_thinking", "data": "x"}, thinking(), model=MODELS[0])
    history = History([user("go"), foreign, user(text("see"), image()), user(text("and"), image())])
    (edit,) = removal(history, ERROR.format(1, 1, "image"), MODELS[1])
    assert edit.start == 2


def test_of_too_many_images_the_oldest_go():
    history = History([user(text(str(number)), image()) for number in range(25)])
    error = "At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels"
    assert removed(history, error) == sorted(((number, 1, None) for number in range(5)), key=str)


def test_without_media_there_is_nothing_to_remove():
    assert removal(History([user("go")]), "Could not process image") == []


@given(histories(ends="user"), st.integers(0, 8), st.integers(0, 4))
def test_a_removal_always_leaves_a_valid_history_with_fewer_media(messages, turn, block):
    history = History(messages)
    count = len(places(history))
    gone = removed(history, ERROR.format(turn, block, "image"))
    assert bool(gone) == bool(count)
    assert refusal(history.messages) is None
    assert [entry.results for entry in history] == [entry.results for entry in History(messages)]


@given(histories())
def test_without_media_changes_nothing_else(messages):
    for message in messages:
        bare = without_media(message)
        assert list(media_of(bare)) == []
        assert (bare is message) == (not list(media_of(message)))


# ---- before it is sent


@pytest.mark.parametrize(
    ("block", "why"),
    [
        (image("A" * (MAX_IMAGE_CHARS + 4)), "are more than the 5242880 that the API takes"),
        (image("???"), "its data are not base64"),
        ({**image(), "source": {"type": "base64", "media_type": "image/png", "data": ""}}, "it is empty"),
        (image("aaaa", "image/bmp"), "the API does not take image/bmp"),
        (image(png(1, 8_001)), "its 1 by 8001 pixels are more than the 8000"),
    ],
)
def test_an_image_that_no_model_takes_is_replaced_before_it_is_sent(block, why):
    history = History([user("go"), assistant(call("a")), user(result("a", [block, text("seen")]))])
    draft = Draft(view(history))
    media_check.apply(draft)
    (edit,) = draft.edits
    assert why in edit.removed
    apply_edits(history, draft.edits)
    note, seen = history.messages[2]["content"][0]["content"]
    assert note["text"].startswith("[Image removed: ")
    assert why in note["text"]
    assert seen == text("seen")


@pytest.mark.parametrize(
    "block",
    [
        image(),
        image(png(8_000, 1)),
        image("aaaa"),
        {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
        {"type": "image", "source": {"type": "file", "file_id": "f"}},
        DOCUMENT,
    ],
)
def test_what_is_not_certain_to_be_refused_is_sent(block):
    assert checked_media(block) == (block, "")


def test_a_wrong_media_type_is_corrected():
    assert checked_media(image(png(), "image/jpeg")) == (image(png(), "image/png"), "")
    webp = base64.b64encode(b"RIFF\x24\0\0\0WEBPVP8 " + b"\0" * 20).decode()
    assert checked_media(image(webp, "image/jpeg")) == (image(webp, "image/webp"), "")
    wave = base64.b64encode(b"RIFF\x24\0\0\0WAVEfmt " + b"\0" * 20).decode()
    assert checked_media(image(wave, "image/webp")) == (image(wave, "image/webp"), "")


def test_the_size_is_read_from_the_header_of_each_format():
    jpeg = bytes.fromhex("ffd8ffe000104a46494600010100000100010000ffc0000b0800100020010111000000")
    assert pixels(jpeg) == (32, 16)
    assert pixels(b"GIF89a" + bytes([5, 0, 6, 0]) + b"\0" * 9) == (5, 6)
    assert pixels(base64.b64decode(png(3, 4))) == (3, 4)
    assert pixels(b"\x89PNG\r\n\x1a\n") is None
    assert pixels(b"not an image") is None


def test_an_image_is_checked_once(monkeypatch):
    seen: list[Any] = []
    monkeypatch.setattr(media_check, "checked_media", noting(seen, checked_media))
    history = History([user(text("see"), image())])
    for _ in range(5):
        media_check.apply(Draft(view(history)))
        history.append(user(text("see"), image()))
    assert len(seen) == 5
