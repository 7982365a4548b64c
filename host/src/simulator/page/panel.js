// The list above the text field: the bot's commands while one types `/…`, and the results of an inline query while one
// types `@bot …`. Arrow keys, Enter, Tab and Escape; or a click.

import { $, el } from "./dom.js";
import { act, api, attempt, state, toast } from "./state.js";

/** What a chosen command does. */
let say = () => {};
export const onCommand = (chosen) => { say = chosen; };

/** What is offered: each with `title`, `about`, `choose()` and perhaps `complete`. */
let offered = [];
let choice = 0;
let label = "";

export function suggest(all = false) {
  const text = $("text").value;
  const typed = /^\/(\w*)$/.exec(text)?.[1];
  const found = all ? state.commands : typed === undefined ? [] : state.commands.filter((entry) => entry.command.startsWith(typed.toLowerCase()));
  const query = inlineQuery(text);
  if (query !== undefined && !all) return askInline(query);
  asked = undefined;
  label = "Commands";
  offer(found.map(({ command, description }) => ({
    title: `/${command}`, about: description, complete: `/${command} `,
    choose: () => { $("text").value = ""; close(); say(`/${command}`); },
  })));
}

function offer(items, hint) {
  offered = items;
  choice = 0;
  draw(hint);
}

export const close = () => offer([]);

function draw(hint) {
  const panel = $("panel");
  const options = offered.map((item, at) => el("div", { role: "option", id: `option-${at}`, "aria-selected": at === choice ? "true" : "false", onclick: () => item.choose() },
    el("strong", {}, item.title), el("span", { className: "quiet" }, item.about ?? "")));
  panel.hidden = !options.length && !hint;
  panel.replaceChildren(...(hint ? [el("p", { className: "quiet", role: "status" }, hint)] : []), el("div", { role: "listbox", "aria-label": label }, options));
  $("menu").setAttribute("aria-expanded", options.length > 0);
  if (options.length) $("text").setAttribute("aria-activedescendant", `option-${choice}`);
  else $("text").removeAttribute("aria-activedescendant");
  options[choice]?.scrollIntoView({ block: "nearest" });
}

/** True if the key was for the list. */
export function panelKey(event) {
  const count = offered.length;
  if (event.key === "Escape" && !$("panel").hidden) { close(); return true; }
  if (!count) return false;
  if (event.key === "ArrowDown") choice = (choice + 1) % count;
  else if (event.key === "ArrowUp") choice = (choice + count - 1) % count;
  else if (event.key === "Enter" && !event.shiftKey) { offered[choice].choose(); return true; }
  else if (event.key === "Tab" && !event.shiftKey && offered[choice].complete) {
    $("text").value = offered[choice].complete;
    close();
    return true;
  } else return false;
  draw();
  return true;
}

export function toggleCommands() {
  if (!state.commands.length) toast("The bot has set no commands.");
  if (offered.length) close();
  else suggest(true);
  $("text").focus();
}

// Inline mode

let asked;
let timer;

function inlineQuery(text) {
  const name = state.bot.username?.toLowerCase();
  const start = `@${name} `;
  return name && text.toLowerCase().startsWith(start) ? text.slice(start.length) : undefined;
}

function askInline(query) {
  label = "Results";
  if (asked?.query === query) return;
  asked = { query };
  clearTimeout(timer);
  offer([], "Asking the bot …");
  timer = setTimeout(() => attempt(async () => {
    const mine = asked;
    const { query_id, update_id } = await api("/sim/inline", { user: state.me, query, chat: state.chat.id });
    if (update_id === null) return offer([], "The bot has not asked for inline queries.");
    mine.id = query_id;
    if (early.delete(query_id)) await showResults(query_id);
  }), 250);
}

/** Answers that were here before the question had told its id. */
const early = new Set();

/** The bot has answered an inline query. */
export function inlineAnswered(id) {
  if (asked?.id === id) attempt(() => showResults(id));
  else if (asked && !asked.id) early.add(id);
}

async function showResults(id) {
  const { answer } = await api(`/sim/query?id=${encodeURIComponent(id)}`);
  if (asked?.id !== id || !answer) return;
  const results = typeof answer.results === "string" ? JSON.parse(answer.results) : answer.results ?? [];
  const items = results.map((result) => ({
    title: result.title ?? result.first_name ?? result.caption ?? result.type,
    about: result.description ?? result.address ?? result.phone_number ?? (result.title ? "" : result.type),
    choose: () => send(id, result),
  }));
  const given = typeof answer.button === "string" ? JSON.parse(answer.button) : answer.button;
  if (given?.start_parameter) {
    items.unshift({ title: given.text, about: "in the private chat", choose: () => { reset(); attempt(() => api("/sim/say", { chat: state.me, user: state.me, text: `/start ${given.start_parameter}` })); } });
  }
  offer(items, items.length ? undefined : "The bot has found nothing.");
}

function reset() {
  asked = undefined;
  $("text").value = "";
  close();
}

function send(query_id, result) {
  reset();
  attempt(() => act("choose", { query_id, result: result.id, chat: state.chat.id, thread: state.thread ?? null }));
}
