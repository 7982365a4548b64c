// Asks `/api` every few seconds and shows what it says. Texts go into the page as text, never as markup.

const EVERY = 2000;
const byId = (id) => document.getElementById(id);
const number = new Intl.NumberFormat();

function element(name, props = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(props)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key in made) made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

/// Which bot is meant, where there are several; none before that is known.
let bot;

/// The path with the bot that is meant.
function ofBot(path) {
  if (bot === undefined || !path.startsWith("/api/") || path === "/api/host") return path;
  return `${path}${path.includes("?") ? "&" : "?"}bot=${encodeURIComponent(bot)}`;
}

async function ask(path, body) {
  const options = body === undefined ? {} : {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  };
  const answer = await fetch(ofBot(path), { ...options, cache: "no-store" });
  const said = await answer.json();
  if (!answer.ok && path !== "/readyz") throw new Error(said.error ?? `the host answers with ${answer.status}`);
  return said;
}

function trouble(error) {
  byId("trouble").hidden = !error;
  byId("trouble").textContent = error?.message ?? "";
}

function showReadiness({ ready, reasons, notes }) {
  const badge = byId("ready");
  badge.textContent = ready ? "ready" : "not ready";
  badge.className = `badge ${ready ? "good" : "bad"}`;
  const told = (list, kind) => list.map(({ part, reason }) => element("li", { className: kind }, `${part}: ${reason}`));
  byId("reasons").replaceChildren(...told(reasons, "bad"), ...told(notes ?? [], "wait"));
}

const STATES = { running: "good", paused: "wait", stopped: "bad", incomplete: "wait", done: "", cancelled: "" };

function showBroadcast(broadcast) {
  const { id, name, plugin, state, reason, total, sent, gone, refused, unknown, waiting } = broadcast;
  const parts = { sent, gone, refused, unknown };
  const done = total - waiting;
  const percent = total ? Math.floor((done * 100) / total) : 0;
  const bar = element("div", {
    className: "bar", role: "progressbar", "aria-valuemin": 0, "aria-valuemax": 100, "aria-valuenow": percent,
    "aria-label": `broadcast ${id}`,
  });
  for (const [kind, count] of Object.entries(parts)) {
    const part = element("span", { className: `is-${kind}`, title: `${kind}: ${number.format(count)}` });
    part.style.width = `${total ? (count * 100) / total : 0}%`;
    bar.append(part);
  }
  const counts = Object.entries({ ...parts, waiting }).filter(([kind, count]) => count > 0 || kind === "sent");
  const numbers = element("div", { className: "numbers" });
  for (const [kind, count] of counts) numbers.append(element("span", {}, `${number.format(count)} ${kind}`));
  if (broadcast.per_second > 0) numbers.append(element("span", {}, `${broadcast.per_second.toFixed(1)}/s`));
  if (broadcast.max_stars !== null) {
    numbers.append(element("span", {}, `${broadcast.stars} of ${number.format(broadcast.max_stars)} Stars`));
  }
  const what = name || broadcast.method;
  const item = element("li", {},
    element("div", { className: "line" },
      element("span", { className: "name" }, what),
      element("span", { className: "hint" }, `${id}${plugin ? ` by ${plugin}` : ""}, ${when(broadcast.created)}`),
      element("span", { className: STATES[state] ?? "" }, state === "running" ? `${percent} %` : state)),
    bar, numbers);
  if (reason) item.append(element("p", { className: "bad" }, reason));
  const buttons = element("div", { className: "buttons" });
  const button = (text, change) => buttons.append(element("button", { onclick: (event) => act(event, id, change, what) }, text));
  if (state === "running") button("Pause", "pause");
  if (state === "paused" || state === "stopped") button("Resume", "resume");
  if (state !== "done" && state !== "cancelled") button("Cancel", "cancel");
  if (buttons.childElementCount) item.append(buttons);
  return item;
}

function when(millis) {
  return new Date(millis).toLocaleString([], { dateStyle: "short", timeStyle: "short" });
}

async function act(event, id, change, what) {
  if (change === "cancel" && !confirm(`End “${what}” for good? Those who wait for it will not get it.`)) return;
  event.target.disabled = true;
  try {
    await ask(`/api/broadcasts/${id}/${change}`, {});
    await refresh();
  } catch (error) {
    trouble(error);
  }
}

function showPlugin({ name, version, state, reason }) {
  return element("li", {},
    element("div", { className: "line" },
      element("span", { className: "name" }, name),
      element("span", { className: "hint" }, version),
      element("span", { className: { serving: "good", paused: "wait" }[state] ?? "bad" }, state)),
    ...(reason ? [element("p", { className: "bad" }, reason)] : []));
}

/// Replaces a list, unless the keyboard is in it: a button must not vanish under somebody's finger.
function replace(id, items) {
  const list = byId(id);
  if (list.contains(document.activeElement) && !document.activeElement.disabled) {
    // Bars and numbers may move; the buttons stay.
    const old = [...list.children];
    if (old.length !== items.length) return list.replaceChildren(...items);
    old.forEach((item, at) => {
      if (item.contains(document.activeElement)) {
        for (const part of [".bar", ".numbers"]) item.querySelector(part)?.replaceWith(items[at].querySelector(part) ?? "");
      } else item.replaceWith(items[at]);
    });
    return undefined;
  }
  return list.replaceChildren(...items);
}

/// Offers the bots to choose from, if there are several.
async function choose() {
  const { bots } = await ask("/api/host");
  const names = bots.map(({ name }) => name);
  const which = byId("which");
  which.hidden = names.length < 2;
  if (which.hidden) {
    bot = undefined;
    return;
  }
  if (!names.includes(bot)) bot = names[0];
  const label = ({ name, ready }) => (ready ? name : `${name} (not ready)`);
  const wanted = bots.map((one) => element("option", { value: one.name, textContent: label(one) }));
  if (document.activeElement !== which) which.replaceChildren(...wanted);
  which.value = bot;
}

async function refresh() {
  await choose();
  const [readiness, summary, broadcasts, plugins] = await Promise.all([
    ask("/readyz"), ask("/api/summary"), ask("/api/broadcasts?limit=30"), ask("/api/plugins"),
  ]);
  showReadiness(readiness);
  byId("bot").textContent = `bot ${summary.bot}, version ${summary.version}`;
  for (const kind of ["dead", "unknown"]) {
    byId(kind).textContent = number.format(summary[kind]) + (summary[kind] < 1000 ? "" : "+");
    byId(kind).className = summary[kind] ? "wait" : "";
  }
  replace("broadcasts", broadcasts.map(showBroadcast));
  byId("no-broadcasts").hidden = broadcasts.length > 0;
  byId("plugins").replaceChildren(...plugins.map(showPlugin));
  trouble();
}

async function run() {
  try {
    if (!document.hidden) await refresh();
  } catch (error) {
    byId("ready").textContent = "no answer";
    byId("ready").className = "badge bad";
    trouble(error);
  }
  setTimeout(run, EVERY);
}

byId("which").addEventListener("change", ({ target }) => {
  bot = target.value;
  refresh().catch(trouble);
});
document.addEventListener("visibilitychange", () => document.hidden || refresh().catch(trouble));
run();
