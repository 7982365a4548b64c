// Dialogs: one at a time, with a form or with anything in it. Escape closes them, and answers nothing.

import { $, button, el } from "./dom.js";

/** Opens the dialog with a title and content; resolves when it is closed. */
export function show(title, ...content) {
  const dialog = $("dialog");
  if (dialog.open) dialog.close();
  dialog.returnValue = "";
  dialog.replaceChildren(el("h2", { id: "dialog-title" }, title), ...content);
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener("close", () => resolve(dialog.returnValue), { once: true }));
}

export const closeDialog = () => $("dialog").open && $("dialog").close();

/** Says something that has to be read. */
export const alertBox = (title, text) => show(title, el("p", {}, text), el("form", { method: "dialog", className: "foot" }, el("button", { className: "primary" }, "OK")));

let count = 0;

function control(field) {
  const id = `field-${count += 1}`;
  const common = { id, name: field.name, required: field.required, "aria-describedby": field.hint ? `${id}-hint` : undefined };
  let input;
  if (field.options) {
    input = el("select", common, field.options.map(({ value, text }) => el("option", { value, selected: value === field.value }, text)));
  } else if (field.boxes) {
    const boxes = field.boxes.map(({ value, text, checked }) => el("label", {}, el("input", { type: "checkbox", name: field.name, value, checked }), text));
    return el("fieldset", {}, el("legend", {}, field.label), boxes);
  } else {
    const { value, type = "text", placeholder, step, min, max, maxLength } = field;
    input = el("input", { ...common, type, placeholder, step, min, max, maxLength, autocomplete: "off", value: value ?? "" });
  }
  const hint = field.hint && el("span", { className: "quiet", id: `${id}-hint` }, field.hint);
  return el("p", {}, el("label", { htmlFor: id }, field.label), input, hint);
}

/**
 * Asks for some fields; answers their values by name, or nothing.
 * @param fields each `{ name, label }` with `value`, `hint`, `type` …, or with `options` or `boxes` to choose from
 */
export async function ask(title, fields, confirm, ...above) {
  const form = el("form", { method: "dialog" }, above, fields.map(control), el("div", { className: "foot" },
    button("Cancel", closeDialog), el("button", { value: "yes", className: "primary" }, confirm)));
  if (await show(title, form) !== "yes") return undefined;
  const data = new FormData(form);
  return Object.fromEntries(fields.map((field) => [field.name, field.boxes ? data.getAll(field.name) : data.get(field.name)]));
}
