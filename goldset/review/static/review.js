// One item at a time. An answer leaves the screen only when the server has said that it is stored.
"use strict";

const $ = (id) => document.getElementById(id);
const NAMES = { yes: "Yes", no: "No", cant_tell: "Can’t tell", later: "Later" };
const searchable = $("main").dataset.searchable === "yes";

let state = null;      // what the server said last
let shown = null;      // the item on the screen: state.item, or a passage that a search found
let pending = null;    // a request that is not acknowledged yet; it is sent again with the same key
let busy = false;
let picked = new Set();
let clock = { since: 0, spent: 0 };

// ---- time spent reading: only while the page is visible -------------------------------------------------------

const startClock = () => { clock = { since: document.hidden ? 0 : performance.now(), spent: 0 }; };
const seconds = () => (clock.spent + (clock.since ? performance.now() - clock.since : 0)) / 1000;
document.addEventListener("visibilitychange", () => {
  if (document.hidden) { clock.spent += clock.since ? performance.now() - clock.since : 0; clock.since = 0; }
  else if (!clock.since) clock.since = performance.now();
});

// ---- drawing --------------------------------------------------------------------------------------------------

function fill(node, ...children) { node.replaceChildren(...children); return node; }

function make(tag, text, className) {
  const node = document.createElement(tag);
  if (text !== undefined) node.textContent = text;
  if (className) node.className = className;
  return node;
}

function only(id) {
  for (const name of ["reading", "pause", "rest"]) $(name).hidden = name !== id;
  $("answers").hidden = id !== "reading";
}

function source(passage) {
  return [passage.title, passage.heading].filter((part) => part).join(" › ").replaceAll(" > ", " › ");
}

function draw(item, place) {
  shown = item;
  picked = new Set();
  only("reading");
  const { question, passage } = item;
  fill($("turns"), ...question.turns.map((turn) => {
    const line = make("li");
    line.dir = "auto";
    line.append(make("b", turn.who), make("div", turn.text, turn.text.length > 280 ? "long" : ""));
    return line;
  }));
  $("question").textContent = question.text;
  $("need").textContent = question.need || "";
  $("source").textContent = source(passage);
  $("place").textContent = place ? `Passage ${place.number} of ${place.of}` : "Found by search";
  for (const [id, text, word] of [["before", passage.before, "Before it, for context"], ["after", passage.after, "After it, for context"]]) {
    $(id).textContent = text;
    $(id).dataset.word = word;
  }
  drawSentences(passage);
  refreshPicked();
  $("reading").setAttribute("aria-busy", "false");
  window.scrollTo(0, 0);
  $("passage").focus({ preventScroll: true });
  startClock();
}

function drawSentences(passage) {
  const parts = [];
  let at = 0;
  passage.sentences.forEach(([start, end], index) => {
    if (start > at) parts.push(document.createTextNode(passage.text.slice(at, start)));
    const node = make("span", passage.text.slice(start, end), "sentence");
    node.tabIndex = 0;
    node.setAttribute("role", "checkbox");
    node.setAttribute("aria-checked", "false");
    node.dataset.index = index;
    parts.push(node);
    at = end;
  });
  parts.push(document.createTextNode(passage.text.slice(at)));
  fill($("text"), ...parts);
}

function refreshPicked() {
  for (const node of $("text").querySelectorAll(".sentence")) {
    node.setAttribute("aria-checked", String(picked.has(Number(node.dataset.index))));
  }
  const n = picked.size;
  $("yestext").textContent = n === 0 ? "Yes" : n === 1 ? "Yes, this sentence" : `Yes, these ${n}`;
  for (const button of $("answers").querySelectorAll("button")) {
    const contradicts = n > 0 && button.dataset.answer && button.dataset.answer !== "yes";
    button.disabled = busy || pending !== null || Boolean(contradicts);
  }
}

function drawState(next) {
  state = next;
  const { answered, total } = next.progress;
  $("bar").max = Math.max(total, 1);
  $("bar").value = answered;
  $("count").textContent = `${answered} of ${total} answered`;
  if (next.unanswered && searchable) drawPause(next.unanswered);
  else drawNext();
}

function drawNext() {
  closeFinder();
  if (state.item) { draw(state.item, state.place); return; }
  shown = null;
  only("rest");
  const open = state.progress.total - state.progress.answered;
  $("resthead").textContent = open ? "Nothing left for you right now" : "Everything is answered";
  $("resttext").textContent = open
    ? `${open} ${open === 1 ? "passage waits" : "passages wait"} for somebody else: they hold the question, or a second person has to read it.`
    : "Thank you. Whoever runs this review can publish now.";
  $("rest").focus();
}

function drawPause(question) {
  shown = null;
  only("pause");
  $("pausequestion").textContent = question.text;
  $("pause").focus();
}

// ---- talking to the server ------------------------------------------------------------------------------------

async function call(path, body) {
  const options = body === undefined ? {} : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  let reply;
  try {
    reply = await fetch(path, { ...options, signal: AbortSignal.timeout(20000) });
  } catch {
    throw { message: "the server does not answer", again: true };
  }
  let data = null;
  try { data = await reply.json(); } catch { /* handled by the status below */ }
  if (reply.ok && data) return data;
  const message = data && typeof data.error === "string" ? data.error : `the server answered ${reply.status}`;
  throw { message, again: reply.status >= 500 };
}

function alarm(text, button, action) {
  $("alarmtext").textContent = text;
  $("retry").textContent = button;
  $("retry").onclick = action;
  $("alarm").hidden = false;
}

async function send() {
  if (busy || !pending) return;
  busy = true;
  $("alarm").hidden = true;
  refreshPicked();
  try {
    const next = await call(pending.path, pending.body);
    const done = pending;
    pending = null;
    busy = false;
    $("say").textContent = `${done.words} stored.`;
    if (done.found) { afterFound(next, done); } else { drawState(next); }
  } catch (problem) {
    busy = false;
    const reason = problem.message || String(problem);
    if (problem.again) {
      alarm(`Not saved: ${reason}. ${pending.words} is kept here.`, "Try again", send);
    } else {
      alarm(`Not saved: ${reason}.`, "Reload the page", () => window.location.reload());
    }
    refreshPicked();
  }
}

function answer(value) {
  if (busy || pending || !shown) return;
  if (picked.size && value !== "yes") return;
  const { passage } = shown;
  const sentences = [...picked].sort((a, b) => a - b).map((index) => {
    const [start, end] = passage.sentences[index];
    return { start, end, text: passage.text.slice(start, end) };
  });
  const count = sentences.length ? ` with ${sentences.length} sentence${sentences.length > 1 ? "s" : ""}` : "";
  pending = {
    path: "/api/answer", words: `Your answer (${NAMES[value]}${count})`, found: shown !== state.item, value,
    body: { item: shown.token, key: newKey(), edition: shown.edition, answer: value, sentences, seconds: seconds() },
  };
  send();
}

function undo() {
  if (busy || pending) return;
  pending = { path: "/api/undo", words: "Taking back your last answer", found: false, body: { key: newKey() } };
  send();
}

function newKey() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function load() {
  try {
    drawState(await call("/api/next"));
    $("alarm").hidden = true;
  } catch (problem) {
    alarm(`Nothing could be loaded: ${problem.message || problem}.`, "Try again", () => window.location.reload());
  }
}

// ---- search ---------------------------------------------------------------------------------------------------

let asking = null;   // the question that a search is about

function closeFinder() {
  if (!searchable) return;
  $("finder").open = false;
  asking = null;
  fill($("results"));
  $("found").textContent = "";
  $("words").value = "";
}

function openFinder() {
  if (!searchable || pending) return;
  if (!$("pause").hidden) {
    // The last passage of the question is gone from the screen; its question stays.
    asking = state.unanswered;
    only("reading");
    $("answers").hidden = true;
    fill($("turns"));
    $("question").textContent = asking.text;
    $("need").textContent = asking.need || "";
    $("passage").hidden = $("hint").hidden = true;
  }
  $("finder").open = true;
  $("words").focus();
}

function leaveFinder() {
  $("passage").hidden = $("hint").hidden = false;
  drawNext();
}

async function search(event) {
  event.preventDefault();
  const question = asking || (shown && shown.question);
  if (!question || !$("words").value.trim()) return;
  asking = question;
  $("found").textContent = "Searching …";
  try {
    const { results } = await call("/api/search", { question: question.token, words: $("words").value });
    fill($("results"), ...results.map(drawResult));
    $("found").textContent = results.length ? "Open a passage to read and answer it." : "No passage has these words.";
  } catch (problem) {
    $("found").textContent = `The search failed: ${problem.message || problem}.`;
  }
}

function drawResult(item) {
  const line = make("li");
  const button = make("button");
  button.type = "button";
  const said = item.answer ? `${NAMES[item.answer]}, as you answered. ` : "";
  button.append(make("b", said + source(item.passage)), make("span", item.passage.text));
  button.disabled = Boolean(item.answer);
  button.dataset.token = item.token;
  button.onclick = () => {
    if (pending) return;
    $("passage").hidden = $("hint").hidden = false;
    draw(item, null);
    $("later").hidden = true;
  };
  line.append(button);
  return line;
}

function afterFound(next, done) {
  // The list stays open, so that more can be found for the same question.
  state = { ...next, unanswered: null };
  $("later").hidden = false;
  const { answered, total } = next.progress;
  $("bar").max = Math.max(total, 1);
  $("bar").value = answered;
  $("count").textContent = `${answered} of ${total} answered`;
  for (const button of $("results").querySelectorAll("button")) {
    if (button.dataset.token === done.body.item) {
      button.disabled = true;
      button.firstChild.textContent = `${NAMES[done.value]}, as you answered.`;
    }
  }
  backToList();
}

function backToList() {
  shown = null;
  picked.clear();
  $("answers").hidden = true;
  $("later").hidden = false;
  $("passage").hidden = $("hint").hidden = true;
  $("words").focus();
}

function goBack() {
  if (!searchable || !$("finder").open || pending) return;
  if (asking && shown && shown !== state.item) backToList(); else leaveFinder();
}

// ---- keys and clicks ------------------------------------------------------------------------------------------

function toggle(node) {
  if (busy || pending) return;
  const index = Number(node.dataset.index);
  if (picked.has(index)) picked.delete(index); else picked.add(index);
  refreshPicked();
}

$("text").addEventListener("click", (event) => {
  const node = event.target.closest(".sentence");
  const selection = window.getSelection();
  if (node && (!selection || selection.isCollapsed)) toggle(node);
});

$("text").addEventListener("mouseup", () => {
  const selection = window.getSelection();
  if (busy || pending || !selection || selection.isCollapsed || !selection.rangeCount) return;
  const range = selection.getRangeAt(0);
  let touched = false;
  for (const node of $("text").querySelectorAll(".sentence")) {
    const inner = document.createRange();
    inner.selectNodeContents(node);
    const overlaps = range.compareBoundaryPoints(Range.END_TO_START, inner) < 0
      && range.compareBoundaryPoints(Range.START_TO_END, inner) > 0;
    if (overlaps) { picked.add(Number(node.dataset.index)); touched = true; }
  }
  if (touched) {
    // The click that ends a drag must not toggle the sentence under it again.
    setTimeout(() => selection.removeAllRanges(), 0);
    refreshPicked();
  }
});

function step(node, by) {
  const all = [...$("text").querySelectorAll(".sentence")];
  const target = all[all.indexOf(node) + by];
  if (target) target.focus();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  const typing = event.target instanceof HTMLInputElement;
  const key = event.key.toLowerCase();
  if (key === "escape") {
    if (picked.size) { picked.clear(); refreshPicked(); }
    else goBack();
    return;
  }
  if (typing) return;
  const sentence = event.target.closest && event.target.closest(".sentence");
  if (sentence && (key === " " || key === "enter")) { event.preventDefault(); toggle(sentence); return; }
  if (sentence && (key === "arrowdown" || key === "arrowup")) { event.preventDefault(); step(sentence, key === "arrowdown" ? 1 : -1); return; }
  if (key === "/" && searchable) { event.preventDefault(); openFinder(); return; }
  if (key === "enter" && !$("pause").hidden && event.target.tagName !== "BUTTON") { drawNext(); return; }
  const values = { y: "yes", n: "no", t: "cant_tell", l: "later" };
  if (key === "u") undo();
  else if (values[key] && !$("answers").hidden && !(key === "l" && $("later").hidden)) answer(values[key]);
});

for (const button of $("answers").querySelectorAll("[data-answer]")) {
  button.addEventListener("click", () => answer(button.dataset.answer));
}
$("undo").addEventListener("click", undo);
$("restundo").addEventListener("click", undo);
$("again").addEventListener("click", load);
$("look").addEventListener("click", openFinder);
$("onward").addEventListener("click", drawNext);
if (searchable) {
  $("search").addEventListener("submit", search);
  $("back").addEventListener("click", goBack);
  $("finder").addEventListener("toggle", () => { if ($("finder").open) $("words").focus(); });
}
window.addEventListener("beforeunload", (event) => { if (pending) event.preventDefault(); });
load();
