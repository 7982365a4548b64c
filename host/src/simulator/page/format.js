// Turns messages into elements. Text only ever becomes text nodes: nothing that a bot sends is read as HTML.

/** Makes an element; properties that the element has are set as such, others become attributes. */
export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name in element && !name.startsWith("aria")) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/** A hue for a person or chat, always the same for the same id. */
export const hue = (id) => Math.abs(Number(id) * 137) % 360;

export function avatar(id, name) {
  const element = el("span", { className: "avatar", "aria-hidden": "true" }, Array.from(name)[0] ?? "?");
  element.style.setProperty("--hue", hue(id));
  return element;
}

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
  return href ? el("a", { href, target: "_blank", rel: "noopener noreferrer" }, ...children) : el("span", {}, ...children);
}

const TAGS = { bold: "strong", italic: "em", underline: "u", strikethrough: "s", code: "code", blockquote: "blockquote", expandable_blockquote: "blockquote" };

function wrap(entity, text, children, say) {
  switch (entity.type) {
    case "text_link": return link(entity.url, ...children);
    case "url": return link(text, ...children);
    case "pre": return el("pre", { "aria-label": entity.language }, ...children);
    case "bot_command": return el("button", { type: "button", className: "command", onclick: () => say(text) }, ...children);
    case "spoiler": return spoiler(children);
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
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); toggle(); }
  });
  return element;
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
    return nodes;
  };
  return build(0, text.length);
}

export const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
export const day = (seconds) => new Date(seconds * 1000).toLocaleDateString([], { weekday: "long", day: "numeric", month: "long", year: "numeric" });

function picture(src, alt) {
  const element = el("img", { src, alt });
  element.onerror = () => element.replaceWith(el("span", { className: "attachment" }, "Photo (files are not kept over a restart)"));
  return element;
}

/** What a message that is not a text shows. */
export function attachment(message) {
  const file = (id, name) => {
    const href = id.startsWith("http") ? id : `/sim/file/${encodeURIComponent(id)}`;
    return el("span", { className: "attachment" }, `${name} · `, id.startsWith("http") ? link(href, href) : el("a", { href, download: "" }, "download"));
  };
  if (message.photo) {
    const id = message.photo.at(-1).file_id;
    return id.startsWith("http") ? file(id, "Photo") : picture(`/sim/file/${encodeURIComponent(id)}`, message.caption ?? "Photo");
  }
  for (const [kind, name] of [["document", "File"], ["video", "Video"], ["animation", "Animation"], ["audio", "Audio"], ["voice", "Voice message"], ["video_note", "Video message"], ["sticker", "Sticker"]]) {
    if (message[kind]) return file(message[kind].file_id, message[kind].file_name ?? name);
  }
  if (message.dice) return el("span", { className: "big" }, `${message.dice.emoji} ${message.dice.value}`);
  if (message.venue) return el("span", { className: "attachment" }, `${message.venue.title}, ${message.venue.address}`);
  if (message.location) return el("span", { className: "attachment" }, `Location ${message.location.latitude}, ${message.location.longitude}`);
  if (message.contact) return el("span", { className: "attachment" }, `${message.contact.first_name} · ${message.contact.phone_number}`);
  if (message.poll) return el("div", { className: "attachment" }, el("strong", {}, message.poll.question), el("ul", {}, ...message.poll.options.map((option) => el("li", {}, option.text))));
  if (message.invoice) return el("div", { className: "attachment" }, el("strong", {}, message.invoice.title), el("div", {}, message.invoice.description), `${(message.invoice.total_amount / 100).toFixed(2)} ${message.invoice.currency}`);
  if (message.successful_payment) return el("span", { className: "attachment" }, `Paid ${(message.successful_payment.total_amount / 100).toFixed(2)} ${message.successful_payment.currency}`);
  if (message.migrate_to_chat_id || message.migrate_from_chat_id) return el("span", { className: "note" }, "The group became a supergroup.");
  return undefined;
}

/** A line that stands for a message in lists and quotes. */
export function summary(message) {
  if (!message) return "";
  const text = message.text ?? message.caption;
  if (text) return text.replace(/\s+/g, " ").slice(0, 120);
  return attachment(message)?.textContent || (message.photo ? "Photo" : "Message");
}
