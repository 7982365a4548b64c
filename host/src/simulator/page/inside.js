// Inside the bot: for each event the update, the plugin that took it, what it did and logged, and what Telegram said to it.

import { $, arrows, el, sync } from "./dom.js";
import { noteOf, summary } from "./cards.js";
import { tree } from "./json.js";
import { api, attempt, nameOf, state } from "./state.js";

const KEEP = 150;
/** What happened, by key; each an entry with `at`, `update`, `runs` and `calls` that belong to no run. */
let entries = new Map();
const after = { updates: 0, runs: 0, calls: 0 };
let hasInsight = true;
let reading;
let again = false;

/** Reads what is new, soon and once. */
export function look() {
  if (reading) { again = true; return; }
  reading = setTimeout(() => attempt(async () => {
    try { await read(); } finally {
      reading = undefined;
      if (again) { again = false; look(); }
    }
  }), 60);
}

async function read() {
  const { updates, runs, calls } = await api(`/sim/activity?updates=${after.updates}&runs=${after.runs}&calls=${unsettled()}`);
  hasInsight = runs !== null;
  for (const { id, at, json } of updates) {
    after.updates = Math.max(after.updates, id);
    entry(`update-${id}`, at).update = JSON.parse(json);
  }
  for (const run of runs ?? []) {
    after.runs = Math.max(after.runs, run.number);
    const ids = run.cause.album ?? (run.cause.update === undefined ? [] : [run.cause.update]);
    const known = ids.map((id) => entries.get(`update-${id}`)).find(Boolean);
    (known ?? entry(`event-${run.event}`, run.at)).runs.push(run);
    for (const id of ids.slice(1)) if (known) entries.delete(`update-${id}`);
    for (const call of run.calls) open.push({ call, at: run.at });
  }
  settle(calls);
  while (entries.size > KEEP) entries.delete(entries.keys().next().value);
  draw();
}

function entry(key, at) {
  if (!entries.has(key)) entries.set(key, { key, at, runs: [], calls: [] });
  return entries.get(key);
}

// Which request of a plugin became which call: the oldest open one with the same method that says the same, or is at least
// for the same chat.

let open = [];
const seen = new Map();

/** The number before the oldest call whose answer is still to come. */
function unsettled() {
  // By the simulated clock, as they come.
  const newest = Math.max(0, ...[...seen.values()].map((call) => call.at));
  const waiting = [...seen.values()].filter((call) => call.answer === undefined && call.refused === undefined && newest - call.at < 60_000);
  return waiting.length ? Math.min(...waiting.map((call) => call.number)) - 1 : after.calls;
}

const plain = (value) => {
  if (typeof value !== "string" || !/^[[{]/.test(value)) return value;
  try { return JSON.parse(value); } catch { return value; }
};
const same = (a, b) => JSON.stringify(plain(a)) === JSON.stringify(plain(b));

function isExact(asked, call) {
  return asked.method === call.method && Object.keys(asked.params ?? {}).every((name) => same(asked.params[name], call.params[name]));
}

/** The host has made something else of it: a part of a long text, say. */
function isAlike({ call: asked, at }, call) {
  return asked.method === call.method && call.at >= at && call.at < at + 60_000 && String(asked.params?.chat_id) === String(call.params.chat_id);
}

const QUIET = /^(getMe|getWebhookInfo|deleteWebhook|setWebhook|setMyCommands|deleteMyCommands|getMyCommands)$/;

function settle(calls) {
  let left = calls.filter((call) => {
    after.calls = Math.max(after.calls, call.number);
    const known = seen.get(call.number);
    if (known) Object.assign(known, call);
    else seen.set(call.number, call);
    return !known;
  });
  for (const fits of [(one, call) => isExact(one.call, call), isAlike]) {
    left = left.filter((call) => {
      const best = open.find((one) => fits(one, call));
      if (best) best.call.made = call;
      open = open.filter((one) => one !== best);
      return !best;
    });
  }
  for (const call of left) if (!QUIET.test(call.method)) entry(`call-${call.number}`, call.at).calls.push(call);
  while (seen.size > 1000) seen.delete(seen.keys().next().value);
  open = open.slice(-500);
}

// Drawing

const elements = new Map();

function chatOf({ update, runs, calls }) {
  const event = update && Object.values(update).find((value) => value && typeof value === "object");
  const chat = event?.chat?.id ?? event?.message?.chat?.id ?? runs[0]?.conversation[0] ?? calls[0]?.params.chat_id;
  return chat === undefined || chat === null ? undefined : Number(chat);
}

function draw() {
  const only = $("only-here").checked;
  const shown = [...entries.values()].filter((one) => !only || chatOf(one) === undefined || chatOf(one) === state.chat?.id);
  shown.sort((a, b) => b.at - a.at);
  const nodes = shown.map(elementOf);
  const note = hasInsight ? "" : el("p", { className: "empty" }, "The bot runs in another process: here is what it is told and what it asks for, but not what its plugins think.");
  if (!nodes.length) nodes.push(el("p", { className: "empty" }, "Say something to the bot. Here you see the update that it gets, which plugin takes it, and what comes of it."));
  sync($("inside"), [...(note ? [note] : []), ...nodes]);
}

function elementOf(one) {
  const signature = JSON.stringify([one.runs.map((run) => [run.number, run.calls.map(outcomeOf)]), one.calls.map((call) => call.answer ?? call.refused), Boolean(one.update)]);
  const known = elements.get(one.key);
  if (known?.signature === signature) return known.element;
  const isOpen = known?.element.open ?? false;
  const details = el("details", { open: isOpen }, summaryOf(one));
  // What nobody looks at is not made.
  const fill = () => { if (details.open && details.childElementCount === 1) details.append(...bodyOf(one)); };
  details.addEventListener("toggle", fill);
  fill();
  if (known) known.element.replaceWith(details);
  elements.set(one.key, { signature, element: details });
  return details;
}

const outcomeOf = (call) => call.made?.refused ?? call.made?.answer ?? call.answer ?? null;

/** Of a pressed button what its user has read: its data is sealed. */
function labelOf({ data, message }) {
  const buttons = (message?.reply_markup?.inline_keyboard ?? []).flat();
  const pressed = data && buttons.find((button) => button.callback_data === data);
  return pressed && `[${pressed.text}]`;
}

/** Who took it, with how much; or what failed. */
function takenBy({ update, runs }, taker) {
  if (taker && !["done", "pass"].includes(taker.verdict)) return `${taker.plugin} failed: ${taker.verdict}`;
  const calls = runs.reduce((sum, run) => sum + run.calls.length, 0);
  if (taker) return `${taker.plugin}${calls ? `, ${calls} call${calls > 1 ? "s" : ""}` : ""}`;
  if (!update || !hasInsight) return "";
  return /^\/cancel(@|\s|$)/.test(update.message?.text ?? "") ? "the host itself: ends what is open" : "no plugin took it";
}

function title({ update, runs, calls }) {
  if (update) {
    const kind = Object.keys(update).find((name) => name !== "update_id");
    const event = update[kind] ?? {};
    const note = event.chat && noteOf(event);
    if (note) return [kind, note];
    const who = event.from?.first_name ?? event.user?.first_name ?? event.sender_chat?.title ?? "";
    const what = event.text ?? event.caption ?? labelOf(event) ?? event.data ?? event.query ?? event.message?.text ?? event.result_id ?? (event.chat && event.message_id ? summary(event) : undefined) ?? event.question ?? event.option_ids?.join(", ") ?? event.new_chat_member?.status ?? "";
    return [kind, [who, what].filter((part) => part !== "").join(": ")];
  }
  const [run] = runs;
  if (run?.cause.timer !== undefined) return ["timer", run.cause.timer];
  if (run?.cause.job !== undefined) return ["job", run.cause.job];
  if (run?.cause.expired !== undefined) return ["state ended", run.cause.expired];
  if (run) return ["event", String(run.event)];
  return ["call", calls[0].method];
}

function summaryOf(one) {
  const [kind, text] = title(one);
  const taker = one.runs.findLast((run) => !run.observes && run.verdict !== "pass");
  const failed = one.runs.some((run) => !["done", "pass"].includes(run.verdict));
  const refused = [...one.calls, ...one.runs.flatMap((run) => run.calls.map((call) => call.made ?? {}))].some((call) => call.refused);
  const to = takenBy(one, taker);
  const sign = failed || refused ? "bad" : taker || one.calls.length ? "good" : "idle";
  return el("summary", {},
    el("span", { className: `dot ${sign}`, role: "img", "aria-label": { bad: "went wrong", good: "went well", idle: "nothing came of it" }[sign] }),
    el("span", { className: "kind" }, kind),
    el("time", {}, new Date(one.at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" })),
    el("span", { className: "what" }, text),
    el("span", { className: "to" }, [to, taker && millis(taker.wall_micros)].filter(Boolean).join(" · ")));
}

const millis = (micros) => `${(micros / 1000).toFixed(micros < 10_000 ? 1 : 0)} ms`;
const section = (name, ...content) => el("section", {}, el("h4", {}, name), content);

function bodyOf(one) {
  const parts = one.runs.map(runElement);
  if (one.update) parts.push(section("Update", tree(one.update)));
  for (const call of one.calls) parts.push(section("A call by the host itself", callElement({ method: call.method, params: call.params, made: call })));
  return parts;
}

function runElement(run) {
  const bad = !["done", "pass"].includes(run.verdict);
  const whose = run.conversation.map((id, at) => id !== null && [["chat", "user", "topic"][at], at === 1 ? nameOf(id) : id].join(" ")).filter(Boolean).join(", ");
  const verdict = bad ? run.verdict : run.verdict === "pass" ? "passed it on" : run.observes ? "looked on" : "took it";
  const time = `${millis(run.wall_micros)}, of which ${millis(run.cpu_micros)} on the processor${run.attempt > 1 ? `; attempt ${run.attempt}` : ""}`;
  const parts = [el("h3", {}, el("strong", {}, run.plugin), " ", el("span", { className: "quiet" }, run.version), " ", el("span", { className: bad ? "bad" : "" }, verdict)), el("p", { className: "quiet" }, time)];
  if (run.before || run.after) parts.push(section(`State (${whose || "of the plugin"})`, stateElement(run)));
  if (run.calls.length) parts.push(section("Calls", run.calls.map(callElement)));
  if (run.writes.length) parts.push(section("Kept", el("ul", {}, run.writes.map((line) => el("li", {}, el("code", {}, line))))));
  if (run.log.length) parts.push(section("Log", el("pre", { tabIndex: 0 }, run.log.join("\n"))));
  return el("div", { className: "run" }, parts);
}

function stateElement({ before, after }) {
  // A state without content is its name once more.
  const isBare = ({ name, content }) => ["", "null", JSON.stringify(name)].includes(content.toLowerCase());
  const one = (name, value) => el("div", {}, el("h5", {}, name), value ? [el("strong", {}, value.name), isBare(value) ? "" : tree(plain(value.content))] : el("span", { className: "quiet" }, "none"));
  if (JSON.stringify(before) === JSON.stringify(after)) return el("div", { className: "states one" }, one("unchanged", after));
  return el("div", { className: "states" }, one("before", before), one("after", after));
}

function callElement({ method, params, made, direct, answer }) {
  const [sign, text] = made?.refused ? ["bad", made.refused] : made?.answer !== undefined ? ["good", made.answer] : answer !== undefined ? ["good", answer] : ["idle", undefined];
  const said = sign === "bad" ? el("p", { className: "bad" }, text) : text === undefined ? el("p", { className: "quiet" }, "no answer yet") : text === "true" ? el("p", { className: "quiet" }, "→ true") : el("details", { className: "answer" }, el("summary", {}, "answer"), tree(plain(text)));
  return el("div", { className: `call ${sign}` }, el("div", {}, el("code", {}, method), direct && el("span", { className: "quiet" }, " waited for the answer")), tree(params), said);
}

/** Another chat is open. */
export const chatChanged = () => { if ($("only-here").checked) draw(); };

$("only-here").onchange = draw;
$("forget").onclick = () => { entries = new Map(); elements.clear(); draw(); };
arrows($("inside"), "#inside > details > summary");
export const showInside = () => { document.body.dataset.view = "inside"; $("to-chat").focus(); };
$("to-inside").onclick = showInside;
$("to-chat").onclick = () => { document.body.dataset.view = "chat"; $("text").focus(); };
