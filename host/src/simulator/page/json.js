// JSON for the eye: coloured, long texts wrapped, large parts folded.

import { el } from "./dom.js";

const FOLD = 12;

/** A value as an element. */
export function tree(value) {
  return el("div", { className: "json", tabIndex: -1 }, node(value, 0));
}

function node(value, depth) {
  if (value === null || typeof value !== "object") return leaf(value);
  const isList = Array.isArray(value);
  const entries = Object.entries(value);
  const [open, end] = isList ? ["[", "]"] : ["{", "}"];
  if (!entries.length) return el("span", {}, open + end);
  const lines = entries.map(([name, child]) => el("div", { className: "field" }, isList ? "" : [el("span", { className: "key" }, name), ": "], node(child, depth + 1)));
  const small = entries.every(([, child]) => child === null || typeof child !== "object") && JSON.stringify(value).length < 50;
  if (small && depth > 0) {
    const inline = entries.flatMap(([name, child], at) => [at ? ", " : "", isList ? "" : [el("span", { className: "key" }, name), ": "], leaf(child)].flat());
    return el("span", {}, `${open} `, inline, ` ${end}`);
  }
  if (depth < 1) return el("span", {}, lines);
  return el("details", { className: "fold", open: depth < 2 && entries.length < FOLD }, el("summary", {}, isList ? ["[", el("span", {}, ` ${entries.length} ]`)] : ["{", el("span", {}, ` ${entries.map(([name]) => name).slice(0, 3).join(", ")}${entries.length > 3 ? ", …" : ""} }`)]), lines);
}

function leaf(value) {
  if (typeof value === "string") return el("span", { className: "string" }, value || "“”");
  return el("span", { className: "atom" }, String(value));
}
