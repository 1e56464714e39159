"""The review page in a real browser: keys, storage, reload, failure, blindness."""

from __future__ import annotations

import itertools
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from goldset.review import ReviewStore
from goldset.schemas import from_rows
from goldset.text import content_hash, question_id, text_sha256
from tests.browser.axe import complaints

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

DOCUMENT = (
    "Membership of the library is free for everyone who lives in the district. "
    "The reading room opens at nine on weekdays \U0001F4D6 and at ten on Saturdays. "
    "It stays closed on Sundays and on public holidays. "
    "Bring your card, or the staff cannot lend you anything. "
    "Printing costs ten cents a page; scanning is free of charge.\n\n"
    "The bicycle stand behind the building is lit until midnight. "
    "Lost property is kept at the desk for four weeks and then given to charity."
)
BLIND = ("verdict", "quote", "score", "rank", "system", "stratum", "reason", "rejection", "positive", "adjudication")
PROGRAM = textwrap.dedent("""
    import sys
    import pyarrow.parquet as pq
    from goldset.review import Passages, ReviewStore, serve
    url, port, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    spans, documents = (pq.read_table(f"{folder}/{name}.parquet") for name in ("spans", "documents"))
    found = lambda words: [s for s, t in zip(spans["span_id"].to_pylist(), spans["text"].to_pylist())
                           if any(w.lower() in t.lower() for w in words.split())]
    serve(ReviewStore(url), port=port, passages=Passages(spans=spans, documents=documents), search=found,
          title="Library", announce=lambda address: print(address, flush=True))
""")


class Served:
    """A review server in its own process, that can be killed and started again on the same port."""

    def __init__(self, folder: Path) -> None:
        import pyarrow.parquet as pq

        self.folder = folder
        self.url = f"sqlite:///{folder / 'review.sqlite'}"
        self.port = 0
        documents = from_rows("documents", [
            {"doc_id": "d", "text": DOCUMENT, "title": "House rules", "url": None, "sha256": text_sha256(DOCUMENT),
             "metadata": "{}"}])
        cuts = [0, DOCUMENT.index("It stays"), DOCUMENT.index("The bicycle"), DOCUMENT.index("Lost property"),
                len(DOCUMENT)]
        spans = from_rows("spans", [
            {"span_id": f"d#{a}-{b}", "doc_id": "d", "start": a, "end": b, "text": DOCUMENT[a:b],
             "heading": "Visiting > Opening hours", "doc_sha256": text_sha256(DOCUMENT),
             "text_hash": content_hash(DOCUMENT[a:b]), "twin_group": f"d#{a}-{b}", "words": 9, "offsets": "verified"}
            for a, b in itertools.pairwise(cuts)])
        self.spans = spans.column("span_id").to_pylist()
        texts = ["When does the reading room open on a Saturday morning?", "Is scanning free?"]
        questions = from_rows("questions", [
            {"question_id": question_id(text), "text": text, "query": text, "need": None, "scope": "{}",
             "context": [{"role": "user", "text": "I moved here last week."},
                         {"role": "assistant", "text": "Welcome. What would you like to know?"}] if n == 0 else [],
             "language": "en", "origin": "log", "asked_first": None, "asked_last": None, "times_asked": 1,
             "draws": 1, "u": 0.5, "inclusion_prob": 1.0, "traffic_weight": 1.0, "cluster_id": text,
             "session_cluster": None, "stratum": "all"} for n, text in enumerate(texts)])
        queue = from_rows("queue", [
            {"item_id": f"i{n}{s}", "question_id": question_id(text), "span_id": self.spans[s], "campaign": "rebuild",
             "wave": 1, "reason": ("positive", "rejection", "no_verdict")[s], "stratum": "rejection_top",
             "stratum_size": 12, "u": 0.5, "order": 10 * n + s} for n, text in enumerate(texts) for s in range(3)])
        self.store = ReviewStore(self.url)
        self.store.append_queue(queue)
        self.store.set_passages(questions=questions, spans=spans, documents=documents)
        pq.write_table(spans, folder / "spans.parquet")
        pq.write_table(documents, folder / "documents.parquet")
        self.process: subprocess.Popen[str] | None = None
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen([sys.executable, "-c", PROGRAM, self.url, str(self.port), str(self.folder)],
                                        stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()
        self.port = int(self.address.rstrip("/").rpartition(":")[2])
        for _ in range(100):
            try:
                urllib.request.urlopen(self.address, timeout=5).close()
                return
            except OSError:
                time.sleep(0.05)
        raise AssertionError("the server did not start")

    def kill(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def labels(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.store.labels().to_pylist()
        return rows


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    found = Served(tmp_path)
    yield found
    found.kill()
    found.store.close()


@pytest.fixture
def page_of(browser: Browser, served: Served) -> Callable[..., Any]:
    @contextmanager
    def opened(name: str = "ada", **options: Any) -> Iterator[Page]:
        context = browser.new_context(**options)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.goto(served.address)
        page.fill("#who", name)
        page.click("button[type=submit]")
        page.wait_for_selector("#passage:visible")
        yield page
        context.close()

    return opened


def count(page: Page, text: str) -> None:
    page.wait_for_function("text => document.getElementById('count').textContent === text", arg=text)


def test_one_key_judges_and_stores_and_a_reload_loses_nothing(served: Served, page_of: Callable[..., Any]) -> None:
    with page_of() as page:
        assert page.inner_text("#question") == "When does the reading room open on a Saturday morning?"
        assert page.inner_text("#after") != ""
        page.keyboard.press("y")
        count(page, "1 of 6 answered")
        assert [(row["relevant"], row["evidence_source"], row["assessor"]) for row in served.labels()] == [
            (True, "whole_span", "ada")]
        assert served.labels()[0]["seconds"] > 0
        page.keyboard.press("n")
        count(page, "2 of 6 answered")
        before = page.inner_text("#text")
        page.reload()
        count(page, "2 of 6 answered")
        assert page.inner_text("#text") == before
        assert [row["relevant"] for row in served.labels()] == [True, False]
        page.keyboard.press("u")
        count(page, "1 of 6 answered")
        assert [row["action"] for row in served.labels()] == ["label", "label", "retract"]
        page.keyboard.press("t")
        count(page, "2 of 6 answered")
        assert served.labels()[-1]["reason"] == "cant_tell"


def test_sentences_by_mouse_and_by_keyboard_are_evidence(served: Served, page_of: Callable[..., Any]) -> None:
    start = DOCUMENT.index("The reading room")
    sentence = "The reading room opens at nine on weekdays \U0001F4D6 and at ten on Saturdays."
    with page_of() as page:
        page.click(".sentence >> nth=1")
        assert page.inner_text("#yestext") == "Yes, this sentence"
        page.keyboard.press("n")  # contradicts the selection: nothing happens
        page.wait_for_timeout(200)
        assert served.labels() == []
        page.keyboard.press("y")
        count(page, "1 of 6 answered")
        assert served.labels()[0]["evidence"] == [{"start": start, "end": start + len(sentence)}]
        assert served.labels()[0]["evidence_source"] == "selected"
        page.focus(".sentence >> nth=0")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Space")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        assert page.inner_text("#yestext") == "Yes, these 2"
        page.keyboard.press("Escape")
        assert page.inner_text("#yestext") == "Yes"
        first, second = page.evaluate(
            "[...document.querySelectorAll('.sentence')].slice(0, 2).map((node) => node.getClientRects()[0])"
            ".map((box) => [box.x + box.width / 2, box.y + box.height / 2])")
        page.mouse.move(*first)
        page.mouse.down()
        page.mouse.move(*second, steps=5)
        page.mouse.up()
        assert page.inner_text("#yestext") == "Yes, these 2"


def test_a_dead_server_is_loud_and_nothing_is_lost(served: Served, page_of: Callable[..., Any]) -> None:
    with page_of() as page:
        page.keyboard.press("y")
        count(page, "1 of 6 answered")
        shown = page.inner_text("#text")
        served.kill()
        page.keyboard.press("n")
        page.wait_for_selector("#alarm:visible")
        assert "Not saved" in page.inner_text("#alarmtext")
        assert page.inner_text("#text") == shown
        page.keyboard.press("y")  # no second answer while the first is not stored
        assert [row["relevant"] for row in served.labels()] == [True]
        served.start()
        page.click("#retry")
        count(page, "2 of 6 answered")
        assert page.is_hidden("#alarm")
        assert [row["relevant"] for row in served.labels()] == [True, False]
        assert page.inner_text("#text") != shown


def test_a_lost_acknowledgement_is_not_stored_twice(served: Served, page_of: Callable[..., Any]) -> None:
    with page_of() as page:
        lost: list[int] = []

        def swallow(route: Any) -> None:
            if not lost:
                lost.append(route.fetch().status)  # the server has stored it; the browser never hears
                route.abort()
            else:
                route.continue_()

        page.route("**/api/answer", swallow)
        page.keyboard.press("n")
        page.wait_for_selector("#alarm:visible")
        assert (lost, len(served.labels())) == ([200], 1)
        page.click("#retry")
        count(page, "1 of 6 answered")
        assert len(served.labels()) == 1


def test_a_stale_tab_is_told_to_reload(served: Served, page_of: Callable[..., Any]) -> None:
    with page_of() as page:
        other = page.context.new_page()
        other.goto(served.address)
        other.wait_for_selector("#passage:visible")
        page.keyboard.press("y")
        count(page, "1 of 6 answered")
        other.keyboard.press("n")
        other.wait_for_selector("#alarm:visible")
        assert "reload the page" in other.inner_text("#alarmtext")
        other.click("#retry")
        count(other, "1 of 6 answered")
        assert [row["relevant"] for row in served.labels()] == [True]


def test_the_page_stays_blind(served: Served, page_of: Callable[..., Any]) -> None:
    received = []
    with page_of() as page:
        page.on("response", lambda reply: received.append(reply.text()) if "/api/" in reply.url else None)
        page.reload()
        page.wait_for_selector("#passage:visible")
        for n in range(1, 7):
            received.append(page.content())
            page.keyboard.press("y")
            count(page, f"{n} of 6 answered")
        page.wait_for_selector("#rest:visible")
        assert page.inner_text("#resthead") == "Everything is answered"
        received.append(page.content())
    everything = " ".join(received).lower()
    assert len(received) >= 14
    assert [word for word in BLIND if re.search(rf"\b{word}\b", everything)] == []


def test_a_search_before_a_question_is_given_up(served: Served, page_of: Callable[..., Any]) -> None:
    with page_of() as page:
        for n in range(1, 4):
            page.keyboard.press("n")
            count(page, f"{n} of 6 answered")
        page.wait_for_selector("#pause:visible")
        page.keyboard.press("/")
        page.fill("#words", "charity")
        page.keyboard.press("Enter")
        page.click("#results button >> nth=0")
        assert page.inner_text("#place") == "Found by search"
        page.click(".sentence >> nth=0")
        page.keyboard.press("y")
        page.wait_for_selector("#results button:disabled")
        row = served.labels()[-1]
        assert (row["item_id"], row["span_id"], row["relevant"]) == (None, served.spans[3], True)
        page.click("#back")
        page.wait_for_selector("#passage:visible")
        assert page.inner_text("#question") == "Is scanning free?"


def test_nothing_overflows_on_a_phone_and_the_keys_are_large_enough(page_of: Callable[..., Any]) -> None:
    with page_of(viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True) as page:
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        for button in page.query_selector_all("#answers button"):
            box = button.bounding_box()
            assert box is not None
            assert box["height"] >= 44
            assert box["width"] >= 44


@pytest.mark.skipif("GOLDSET_SCREENSHOTS" not in os.environ, reason="GOLDSET_SCREENSHOTS names no folder")
def test_screenshots(served: Served, page_of: Callable[..., Any]) -> None:
    folder = Path(os.environ["GOLDSET_SCREENSHOTS"])
    views: list[tuple[str, dict[str, Any]]] = [
        ("desktop-light", {"viewport": {"width": 1280, "height": 860}}),
        ("desktop-dark", {"viewport": {"width": 1280, "height": 860}, "color_scheme": "dark"}),
        ("phone-light", {"viewport": {"width": 390, "height": 800}, "is_mobile": True, "has_touch": True,
                         "device_scale_factor": 2}),
        ("phone-dark", {"viewport": {"width": 390, "height": 800}, "is_mobile": True, "has_touch": True,
                        "device_scale_factor": 2, "color_scheme": "dark"})]
    for name, options in views:
        with page_of(**options) as page:
            page.click(".sentence >> nth=1")
            page.screenshot(path=folder / f"{name}.png")
            page.keyboard.press("Escape")
            if name in ("desktop-light", "phone-light"):
                served.kill()
                page.click("#answers button >> nth=1")
                page.wait_for_selector("#alarm:visible")
                page.screenshot(path=folder / f"{name}-alarm.png")
                served.start()
    with page_of(viewport={"width": 1280, "height": 860}) as page:
        page.keyboard.press("/")
        page.fill("#words", "the")
        page.keyboard.press("Enter")
        page.wait_for_selector("#results button")
        page.screenshot(path=folder / "search.png", full_page=True)
        page.keyboard.press("Escape")
        for n in range(1, 4):
            page.keyboard.press("n")
            count(page, f"{n} of 6 answered")
        page.wait_for_selector("#pause:visible")
        page.screenshot(path=folder / "pause.png")
        page.keyboard.press("/")
        page.screenshot(path=folder / "pause-search.png")
        page.keyboard.press("Escape")
        for n in range(4, 7):
            page.keyboard.press("y")
            count(page, f"{n} of 6 answered")
        page.wait_for_selector("#rest:visible")
        page.screenshot(path=folder / "rest.png")
        page.request.post(served.address + "leave")
        page.goto(served.address)
        page.screenshot(path=folder / "enter.png")


@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (1280, "dark")])
def test_axe_finds_nothing_wrong_with_the_page(served: Served, page_of: Callable[..., Any], browser: Browser,
                                               width: int, scheme: str) -> None:
    pytest.importorskip("axe_playwright_python")
    options: dict[str, Any] = {"viewport": {"width": width, "height": 800}, "color_scheme": scheme}
    context = browser.new_context(**options)
    door = context.new_page()
    door.goto(served.address)
    assert complaints(door) == []
    context.close()
    with page_of(**options) as page:
        assert complaints(page) == []
        page.click(".sentence >> nth=0")
        assert complaints(page) == [], "with a sentence selected"
        page.keyboard.press("Escape")
        for done in range(6):
            page.keyboard.press("y")
            count(page, f"{done + 1} of 6 answered")
        page.wait_for_timeout(200)
        assert complaints(page) == [], "at the end"
