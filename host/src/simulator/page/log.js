// The list of messages: drawn with as little change as possible, and kept at its end unless somebody scrolls up.

import { $, arrows, day, el, sync } from "./dom.js";
import { here, nameOf, ordered, state } from "./state.js";
import { messageElement } from "./view.js";

/** Elements of messages that have not changed since they were made, and of days. */
const made = new Map();
const days = new Map();

function elementOf(album) {
  const [{ chat, message_id }] = album;
  const waiting = [...state.pressed.keys()].filter((place) => place.startsWith(`${chat.id}/${message_id}/`)).join();
  const known = made.get(message_id);
  const same = known && known.waiting === waiting && known.album.length === album.length && known.album.every((message, at) => message === album[at]);
  if (same) return known.element;
  const element = messageElement(album);
  // An edit is seen as one.
  if (known && known.album[0].edit_date !== album[0].edit_date) element.classList.add("changed");
  made.set(message_id, { album, waiting, element });
  return element;
}

/** The messages of an album come as one. */
function albums() {
  const all = [];
  for (const message of ordered()) {
    const last = all.at(-1)?.[0];
    if (message.media_group_id && last?.media_group_id === message.media_group_id) all.at(-1).push(message);
    else all.push([message]);
  }
  return all;
}

function goneElement(id, by) {
  const key = `gone-${id}`;
  if (!days.has(key)) days.set(key, el("div", { className: "note gone" }, by === null || by === undefined ? `${state.bot.first_name} deleted a message` : `${nameOf(by)} deleted a message`));
  return days.get(key);
}

function dayElement(date) {
  if (!days.has(date)) days.set(date, el("div", { className: "day" }, date));
  return days.get(date);
}

/** Whether the log shows its end, and is to go on doing so. */
let atEnd = true;

function toEnd() {
  const log = $("log");
  if (!atEnd) return;
  log.scrollTop = log.scrollHeight;
  $("newer").hidden = true;
}

/** Draws the messages; without any, `empty()`. */
export function drawMessages(empty, goToEnd) {
  atEnd ||= goToEnd;
  const items = albums().map((album) => ({ id: album[0].message_id, date: album[0].date, element: elementOf(album) }));
  for (const [id, { by, place }] of state.gone) if (place === here()) items.push({ id, element: goneElement(id, by) });
  items.sort((a, b) => a.id - b.id);
  const nodes = [];
  let shownDay;
  for (const { date, element } of items) {
    const name = date && day(date);
    if (name && name !== shownDay) nodes.push(dayElement(shownDay = name));
    nodes.push(element);
  }
  if (!nodes.length && state.chat) nodes.push(empty());
  const focused = document.activeElement?.closest?.("#log button")?.textContent;
  const focusedId = document.activeElement?.closest?.("#log article")?.id;
  sync($("log"), nodes);
  if (focusedId && document.activeElement === document.body) {
    const article = document.getElementById(focusedId);
    const again = focused && [...(article ?? $("log")).querySelectorAll("button")].find((key) => key.textContent === focused);
    (again || article)?.focus({ preventScroll: true });
  }
  toEnd();
}

/** Another chat or person: nothing that was made can be used again. */
export function forgetMessages() {
  made.clear();
  days.clear();
}

/** Offers the way down after a message that came while somebody reads further up. */
export const offerNewer = () => { $("newer").hidden = atEnd; };

/** Shows a message, and that it is the one. */
export function goTo(id) {
  const element = document.getElementById(`message-${id}`);
  if (!element) return false;
  atEnd = false;
  element.scrollIntoView({ block: "center" });
  element.focus({ preventScroll: true });
  element.classList.remove("changed");
  requestAnimationFrame(() => element.classList.add("changed"));
  return true;
}

$("newer").onclick = () => { atEnd = true; toEnd(); $("text").focus(); };
let lastTop = 0;
$("log").onscroll = () => {
  const log = $("log");
  // Only who scrolls up leaves the end: a log that grows does not.
  if (log.scrollHeight - log.scrollTop - log.clientHeight < 60) atEnd = true;
  else if (log.scrollTop < lastTop) atEnd = false;
  lastTop = log.scrollTop;
  if (atEnd) $("newer").hidden = true;
};
// Pictures that arrive, and keyboards that open, must not push the newest message out of sight.
for (const event of ["load", "loadedmetadata"]) $("log").addEventListener(event, toEnd, true);
new ResizeObserver(toEnd).observe($("log"));
arrows($("log"), "article");
