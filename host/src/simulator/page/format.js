// Text with its entities. Links lead where they say, in a new tab, and only when somebody follows them.

import { el } from "./dom.js";

/** The address of a link, or nothing if it is not one that is safe to follow. */
function safeAddress(address) {
  const full = /^[a-z][a-z0-9+.-]*:/i.test(address) ? address : `https://${address}`;
  try {
    return ["http:", "https:", "mailto:", "tel:", "tg:"].includes(new URL(full).protocol) ? full : undefined;
  } catch {
    return undefined;
  }
}

export function link(address, ...children) {
  const href = safeAddress(address);
  return href ? el("a", { href, target: "_blank", rel: "noopener noreferrer", title: href }, ...children) : el("span", {}, ...children);
}

const TAGS = { bold: "strong", italic: "em", underline: "u", strikethrough: "s", code: "code", blockquote: "blockquote", expandable_blockquote: "blockquote" };

function wrap(entity, text, children, say) {
  switch (entity.type) {
    case "text_link": return link(entity.url, ...children);
    case "url": return link(text, ...children);
    case "email": return link(`mailto:${text}`, ...children);
    case "phone_number": return link(`tel:${text}`, ...children);
    case "pre": return el("pre", { "aria-label": entity.language, "data-language": entity.language, tabIndex: 0 }, ...children);
    case "bot_command": return el("button", { type: "button", className: "command", onclick: () => say(text) }, ...children);
    case "spoiler": return spoiler(children);
    case "expandable_blockquote": return expandable(children);
    case "mention": case "hashtag": case "cashtag": case "text_mention": return el("span", { className: "mention" }, ...children);
    default: return TAGS[entity.type] ? el(TAGS[entity.type], {}, ...children) : el("span", {}, ...children);
  }
}

function spoiler(children) {
  const element = el("span", { className: "spoiler", role: "button", tabIndex: 0, "aria-pressed": "false", "aria-label": "Hidden text" }, ...children);
  const toggle = () => {
    const shown = element.getAttribute("aria-pressed") === "false";
    element.setAttribute("aria-pressed", shown);
    if (shown) element.removeAttribute("aria-label");
  };
  element.addEventListener("click", toggle);
  element.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); event.stopPropagation(); toggle(); }
  });
  return element;
}

function expandable(children) {
  const element = el("blockquote", { className: "short" }, ...children);
  element.append(el("button", { type: "button", className: "unfold", onclick: ({ target }) => { element.classList.remove("short"); target.remove(); } }, "show all"));
  return element;
}

const isBlock = (node) => ["PRE", "BLOCKQUOTE"].includes(node?.tagName);

/** Blocks stand on lines of their own anyway. */
function withoutBreaks(node, before, after) {
  if (typeof node !== "string") return node;
  const begin = isBlock(before) && node.startsWith("\n") ? 1 : 0;
  const end = isBlock(after) && node.length > begin && node.endsWith("\n") ? -1 : undefined;
  return node.slice(begin, end);
}

/** Text with its entities as nodes. Offsets are UTF-16 units, as JavaScript's own. */
export function formatted(text, entities = [], say = () => {}) {
  const sorted = [...entities].sort((a, b) => a.offset - b.offset || b.length - a.length);
  const build = (from, to) => {
    const nodes = [];
    let at = from;
    while (sorted.length && sorted[0].offset < to) {
      const entity = sorted.shift();
      const start = Math.max(entity.offset, at);
      const end = Math.min(entity.offset + entity.length, to);
      if (end <= start) continue;
      if (start > at) nodes.push(text.slice(at, start));
      nodes.push(wrap(entity, text.slice(start, end), build(start, end), say));
      at = end;
    }
    if (at < to) nodes.push(text.slice(at, to));
    return nodes.map((node, at) => withoutBreaks(node, nodes[at - 1], nodes[at + 1]));
  };
  return build(0, text.length);
}

/** An amount in the smallest units of a currency. */
export function money(amount, currency) {
  if (currency === "XTR") return `⭐ ${amount}`;
  try {
    const format = new Intl.NumberFormat([], { style: "currency", currency });
    return format.format(amount / 10 ** format.resolvedOptions().maximumFractionDigits);
  } catch {
    return `${amount} ${currency}`;
  }
}
