// The list of messages: drawn with as little change as possible, and kept at its end unless somebody scrolls up.

import { day, el } from "./format.js";
import { $, ordered, state } from "./state.js";
import { messageElement } from "./view.js";

/** Elements of messages that have not changed since they were made. */
const made = new Map();

function elementOf(message, context) {
  const id = message.message_id;
  const waiting = [...state.pressed.keys()].filter((place) => place.startsWith(`${message.chat.id}/${id}/`)).join();
  const known = made.get(id);
  if (known?.message === message && known.waiting === waiting) return known.element;
  const element = messageElement(message, context);
  made.set(id, { message, waiting, element });
  return element;
}

/** Makes `nodes` the children of `parent` and moves none that is in its place: focus and selection stay. */
function sync(parent, nodes) {
  const wanted = new Set(nodes);
  for (const child of [...parent.childNodes]) if (!wanted.has(child)) child.remove();
  let at = parent.firstChild;
  for (const node of nodes) {
    if (node === at) at = at.nextSibling;
    else parent.insertBefore(node, at);
  }
}

/** Whether the log shows its end, and is to go on doing so. */
let atEnd = true;

function toEnd() {
  const log = $("log");
  if (atEnd) log.scrollTop = log.scrollHeight;
  if (atEnd) $("newer").hidden = true;
}

/** Draws the messages; without any, `empty()`. */
export function drawMessages(context, empty, goToEnd) {
  atEnd ||= goToEnd;
  const nodes = [];
  let shownDay;
  for (const message of ordered()) {
    const date = day(message.date);
    if (date !== shownDay) nodes.push(el("div", { className: "day" }, shownDay = date));
    nodes.push(elementOf(message, context));
  }
  if (!nodes.length && state.chat) nodes.push(empty());
  const focused = document.activeElement?.closest?.("#log button")?.textContent;
  sync($("log"), nodes);
  if (focused && document.activeElement === document.body) {
    [...$("log").querySelectorAll("button")].findLast((button) => button.textContent === focused)?.focus({ preventScroll: true });
  }
  toEnd();
}

/** Another chat or person: nothing that was made can be used again. */
export const forgetMessages = () => made.clear();

/** Offers the way down after a message that came while somebody reads further up. */
export const offerNewer = () => { $("newer").hidden = atEnd; };

$("newer").onclick = () => { atEnd = true; toEnd(); };
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
$("log").addEventListener("load", toEnd, true);
new ResizeObserver(toEnd).observe($("log"));
