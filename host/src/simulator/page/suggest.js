// The menu of commands: `/` and the first letters, arrow keys, Enter, Tab, Escape; or the button.

import { el } from "./format.js";
import { $, state, toast } from "./state.js";

let say = () => {};

/** Sets what a chosen command does. */
export const onCommand = (chosen) => { say = chosen; };

export function suggest(all = false) {
  const typed = /^\/(\w*)$/.exec($("text").value)?.[1];
  state.suggested = all ? state.commands : typed === undefined ? [] : state.commands.filter((entry) => entry.command.startsWith(typed));
  state.choice = 0;
  drawSuggestions();
}

function drawSuggestions() {
  const options = state.suggested.map((entry, at) => el("div", { role: "option", id: `command-${at}`, "aria-selected": at === state.choice ? "true" : "false", onclick: () => choose(at) },
    el("strong", {}, `/${entry.command}`), el("span", { className: "what" }, entry.description)));
  $("suggestions").hidden = !options.length;
  $("suggestions").replaceChildren(...options);
  $("menu").setAttribute("aria-expanded", options.length > 0);
  if (options.length) $("text").setAttribute("aria-activedescendant", `command-${state.choice}`);
  else $("text").removeAttribute("aria-activedescendant");
  options[state.choice]?.scrollIntoView({ block: "nearest" });
}

function choose(at) {
  const { command } = state.suggested[at];
  $("text").value = "";
  suggest();
  say(`/${command}`);
  $("text").focus();
}

/** True if the key was for the suggestions. */
export function suggestionKey(event) {
  const count = state.suggested.length;
  if (!count) return false;
  if (event.key === "ArrowDown") state.choice = (state.choice + 1) % count;
  else if (event.key === "ArrowUp") state.choice = (state.choice + count - 1) % count;
  else if (event.key === "Enter") { choose(state.choice); return true; }
  else if (event.key === "Tab" && !event.shiftKey) {
    $("text").value = `/${state.suggested[state.choice].command} `;
    suggest();
    return true;
  } else if (event.key === "Escape") state.suggested = [];
  else return false;
  drawSuggestions();
  return true;
}

$("menu").onclick = () => {
  if (!state.commands.length) toast("The bot has set no commands.");
  if (state.suggested.length) {
    state.suggested = [];
    drawSuggestions();
  } else {
    suggest(true);
  }
  $("text").focus();
};
