// The simulated clock: what time it is in the chats, and how it is put ahead where the bot's goes along.

import { $, button, el, icon } from "./dom.js";
import { api, attempt, toast } from "./state.js";

let told;
let toldAt = 0;

export async function readClock() {
  told = await api("/sim/clock");
  toldAt = performance.now();
  draw();
}

const now = () => told.now + (performance.now() - toldAt) / 1000;

function span(seconds) {
  const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const words = [];
  let left = Math.max(0, Math.round(seconds));
  for (const [length, unit] of parts) {
    if (left >= length && words.length < 2) words.push(`${Math.floor(left / length)} ${unit}`);
    left %= length;
  }
  return words.join(" ") || "0 s";
}

async function advance(by) {
  told = await api("/sim/clock", by);
  toldAt = performance.now();
  draw();
  toast(`It is ${time()} now.`);
}

const time = () => new Date(now() * 1000).toLocaleString([], { weekday: "short", hour: "2-digit", minute: "2-digit" });

function draw() {
  const holder = $("clock");
  const known = $("clock-popup");
  const open = known?.matches(":popover-open");
  const ahead = told.ahead ? el("span", { className: "ahead" }, `+${span(told.ahead)}`) : "";
  const face = el("button", { type: "button", id: "clock-face", "aria-haspopup": "dialog" }, icon("clock"), el("time", {}, time()), ahead);
  face.setAttribute("popovertarget", "clock-popup");
  if (!known) {
    const popup = el("div", { id: "clock-popup", className: "popup clock" });
    popup.popover = "auto";
    holder.replaceChildren(face, popup);
    popup.addEventListener("toggle", ({ newState }) => { if (newState === "open") attempt(readClock); });
  } else {
    const focused = document.activeElement?.id === "clock-face";
    $("clock-face").replaceWith(face);
    if (focused) face.focus();
  }
  const popup = $("clock-popup");
  const had = open && popup.contains(document.activeElement) ? document.activeElement.textContent : undefined;
  popup.replaceChildren(...controls());
  if (had) [...popup.querySelectorAll("button")].find((key) => key.textContent.startsWith(had.slice(0, 7)))?.focus();
}

function controls() {
  if (!told.moves_host) {
    return [el("p", {}, "The bot's clock can't be moved from here: it runs in another process, or beside other bots. Run it with ", el("code", {}, "botyard dev"), " or ", el("code", {}, "botyard run --simulator"), " alone.")];
  }
  const ahead = (text, seconds) => button(text, () => attempt(() => advance({ advance_seconds: seconds })));
  const next = told.next_timer && told.next_timer / 1000 - now();
  const timer = told.next_timer
    ? button(`To the next timer (${span(next)})`, () => attempt(() => advance({ to_next_timer: true })))
    : el("p", { className: "quiet" }, "The bot has set no timer.");
  return [el("p", { className: "quiet" }, "Put the clock ahead: timers come due, states expire."), el("div", { className: "row" }, ahead("+1 min", 60), ahead("+1 h", 3600), ahead("+1 day", 86400)), timer];
}

setInterval(() => { if (told && $("clock-face")) $("clock-face").querySelector("time").textContent = time(); }, 5000);
