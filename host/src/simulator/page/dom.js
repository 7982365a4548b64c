// Elements. Text only ever becomes text nodes: nothing that a bot sends is read as HTML.

export const $ = (id) => document.getElementById(id);

/** Makes an element; properties that the element has are set as such, others become attributes. */
export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name in element && !name.startsWith("aria") && name !== "list") element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== false));
  return element;
}

export const button = (text, onclick, properties = {}) => el("button", { type: "button", onclick, ...properties }, text);

const ICONS = {
  back: "M15 5l-7 7 7 7",
  more: "M5 12h.01M12 12h.01M19 12h.01",
  info: "M12 11v6M12 7.5h.01M3 12a9 9 0 1 0 18 0a9 9 0 1 0-18 0",
  plus: "M12 5v14M5 12h14",
  pencil: "M4 20l4-1L20 7l-3-3L5 16zM14 7l3 3",
  clip: "M20 11l-8.5 8.5a5 5 0 0 1-7-7L13 4a3.4 3.4 0 0 1 5 5l-8.500 8.500a1.700 1.700 0 0 1-2.500-2.500L14.500 7.500",
  send: "M4 12l16-8-5 16-3-7z",
  close: "M6 6l12 12M18 6L6 18",
  pin: "M9 4h6l-1 6 3 3H7l3-3zM12 13v7",
  clock: "M12 7v5l3 2M3 12a9 9 0 1 0 18 0a9 9 0 1 0-18 0",
  file: "M7 3h7l5 5v13H7zM14 3v5h5",
  place: "M12 21s7-6.500 7-12a7 7 0 0 0-14 0c0 5.500 7 12 7 12zM9.500 9a2.500 2.500 0 1 0 5 0a2.500 2.500 0 1 0-5 0",
  person: "M8 8a4 4 0 1 0 8 0a4 4 0 1 0-8 0M4 21c0-4 3.500-6.500 8-6.500s8 2.500 8 6.500",
};

export function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}

/** A hue for a person or chat, always the same for the same id. */
export const hue = (id) => ((Math.abs(Number(id)) % 9973) * 137) % 360;

export function avatar(id, name, sign) {
  const element = el("span", { className: "avatar", "aria-hidden": "true" }, sign ?? Array.from(name)[0] ?? "?");
  element.style.setProperty("--hue", hue(id));
  return element;
}

/** Makes `nodes` the children of `parent` and moves none that is in its place: focus and selection stay. */
export function sync(parent, nodes) {
  const wanted = new Set(nodes);
  for (const child of [...parent.childNodes]) if (!wanted.has(child)) child.remove();
  let at = parent.firstChild;
  for (const node of nodes) {
    if (node === at) at = at.nextSibling;
    else parent.insertBefore(node, at);
  }
}

/** Arrow keys, Home and End go through what `selector` finds in a list. */
export function arrows(list, selector) {
  list.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity }[event.key];
    if (!step || event.altKey || event.ctrlKey || event.metaKey || event.target.matches("input, textarea, select")) return;
    const items = [...list.querySelectorAll(selector)];
    const now = items.findIndex((item) => item === document.activeElement || item.contains(document.activeElement));
    const next = now < 0 ? (step < 0 ? items.length - 1 : 0) : Math.max(0, Math.min(items.length - 1, now + step));
    if (!items[next]) return;
    event.preventDefault();
    items[next].focus();
  });
}

export const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
export const day = (seconds) => new Date(seconds * 1000).toLocaleDateString([], { weekday: "long", day: "numeric", month: "long", year: "numeric" });
