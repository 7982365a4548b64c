// What one writes: text, replies and edits, files and other things, and the bot's reply keyboard.

import { app, appWithData } from "./buttons.js";
import { $, button, el, icon } from "./dom.js";
import { summary } from "./cards.js";
import { ask } from "./dialogs.js";
import { panelKey, suggest, toggleCommands } from "./panel.js";
import { openAt } from "./popup.js";
import { actHere, api, attempt, isGroup, mayWrite, nameOf, ordered, state, toast, topic } from "./state.js";

export function say(text) {
  const { chat, me: user, thread, replying } = state;
  stop();
  const said = { chat: chat.id, user, text, thread: thread ?? null, reply_to: replying?.message_id ?? null };
  return attempt(() => api("/sim/say", said));
}

export function reply(message) {
  stop();
  state.replying = message;
  drawContext();
  $("text").focus();
}

export function edit(message) {
  stop();
  state.editing = message;
  $("text").value = message.text ?? message.caption;
  drawContext();
  fit();
  $("text").focus();
}

/** Neither replies nor edits any more. */
export function stop() {
  if (state.editing) $("text").value = "";
  state.editing = state.replying = undefined;
  drawContext();
  fit();
}

export function type(text) {
  stop();
  $("text").value = text;
  $("text").focus();
  suggest();
  fit();
}

function drawContext() {
  const about = state.editing ?? state.replying;
  $("context").hidden = !about;
  if (!about) return;
  const what = state.editing ? "Editing" : `Reply to ${about.from?.first_name ?? about.sender_chat?.title ?? ""}`;
  $("context").replaceChildren(el("span", {}, el("strong", {}, what), el("span", { className: "quiet" }, summary(about))), button(icon("close"), () => { stop(); $("text").focus(); }, { className: "icon", "aria-label": "Cancel" }));
}

const drawn = new Map();

/** Draws anew only what is to look otherwise: who is about to press something finds it where it was. */
export function drawOnce(id, facts, make) {
  const signature = JSON.stringify(facts);
  if (drawn.get(id) === signature) return;
  drawn.set(id, signature);
  $(id).replaceChildren(...make());
}

/** What is possible in the open chat. */
export function drawComposer() {
  const { chat } = state;
  const may = mayWrite();
  for (const control of [$("text"), $("send"), $("menu"), $("attach")]) control.disabled = !may;
  const speakers = chat && isGroup() ? chat.members.filter((id) => chat.type !== "channel" || chat.admins.includes(id)) : [];
  $("speaker-label").hidden = speakers.length < 2;
  drawOnce("speaker", [speakers, state.me, speakers.map(nameOf)], () => speakers.map((id) => el("option", { value: id, selected: id === state.me }, nameOf(id))));
  const menu = chat?.type === "private" ? chat.menu_button : undefined;
  $("menu").textContent = menu?.type === "web_app" ? menu.text : "/";
  $("menu").title = menu?.type === "web_app" ? `would open ${menu.web_app?.url}` : "Commands";
  $("menu").classList.toggle("named", menu?.type === "web_app");
  drawContext();
  drawKeyboard();
}

function drawKeyboard() {
  const source = ordered().findLast((message) => message.from_bot && message.keyboard);
  const keyboard = source?.keyboard;
  const rows = keyboard?.keyboard;
  const used = keyboard?.one_time_keyboard && state.keyboardUsed === `${state.chat.id}/${source.message_id}`;
  $("keyboard").hidden = !rows || used || !mayWrite();
  $("keyboard").className = keyboard?.resize_keyboard ? "" : "tall";
  const use = (work) => {
    if (keyboard.one_time_keyboard) state.keyboardUsed = `${state.chat.id}/${source.message_id}`;
    work();
    drawKeyboard();
  };
  const key = (item) => {
    if (item.request_contact) return button(`${item.text} 📞`, () => use(() => attempt(() => send("contact", {}))));
    if (item.request_location) return button(`${item.text} 📍`, () => use(() => attempt(sendPlace)));
    if (item.web_app) return button(`${item.text} ▣`, () => attempt(() => appWithData(item)), { title: "opens a mini app" });
    const other = ["request_users", "request_chat", "request_poll", "request_managed_bot"].find((name) => item[name]);
    if (other) return button(item.text, undefined, { disabled: true, title: "The playground can't follow this kind of button" });
    return button(item.text, () => use(() => say(item.text)));
  };
  drawOnce("keyboard", [source?.message_id, state.chat?.id, state.me], () => (rows ?? []).map((row) => el("div", { className: "row" }, row.map(key))));
  const hint = used ? undefined : keyboard?.input_field_placeholder;
  const why = topic()?.closed ? "The topic is closed" : "Only administrators write here";
  $("text").placeholder = mayWrite() ? hint ?? "Message" : state.chat ? why : "";
}

/** The bot wants a reply to what it has just said. */
export function obey(message) {
  if (message.keyboard?.force_reply && mayWrite()) reply(message);
}

// Things

const send = (kind, fields, files = [], caption = "") => {
  const reply_to = state.replying?.message_id ?? null;
  stop();
  return actHere("send", { kind, fields, files, caption, thread: state.thread ?? null, reply_to });
};

async function sendPlace() {
  const place = await ask("Send a place", [
    { name: "latitude", label: "Latitude", type: "number", step: "any", min: -90, max: 90, value: "41.31108", required: true },
    { name: "longitude", label: "Longitude", type: "number", step: "any", min: -180, max: 180, value: "69.24056", required: true },
    { name: "title", label: "Name of the place", hint: "with a name it is a venue" },
    { name: "address", label: "Address" },
  ], "Send");
  if (!place) return;
  const fields = { latitude: Number(place.latitude), longitude: Number(place.longitude), title: place.title, address: place.address };
  await send(place.title ? "venue" : "location", fields);
}

async function sendContact() {
  const who = await ask("Send a contact", [{ name: "of", label: "Whose", value: String(state.me), options: state.users.map((user) => ({ value: String(user.id), text: user.first_name })) }], "Send");
  if (who) await send("contact", { user_id: Number(who.of) });
}

async function sendEmoji(kind, title, emoji) {
  const one = await ask(title, [{ name: "emoji", label: title, options: emoji.map((value) => ({ value, text: value })) }], "Send");
  if (one) await send(kind, { emoji: one.emoji });
}

function chooseFiles(accept, kindOf) {
  const input = $("files");
  input.accept = accept;
  input.value = "";
  input.onchange = () => attempt(() => sendFiles([...input.files], kindOf));
  input.click();
}

const kindByType = ({ type }) => (type === "image/gif" ? "animation" : type.startsWith("image/") ? "photo" : type.startsWith("video/") ? "video" : "document");

/** Sends files; neighbours of one kind are an album. What was typed is the caption. */
export async function sendFiles(files, kindOf = kindByType) {
  if (!mayWrite()) return;
  let caption = state.editing ? "" : $("text").value.trim();
  let album = [];
  const flush = async () => {
    if (!album.length) return;
    await send(album[0].kind, {}, album.map((file) => file.id), caption);
    caption = "";
    album = [];
  };
  for (const file of files) {
    if (file.size > 20 << 20) { toast(`${file.name} is larger than the 20 MB that a bot can fetch.`); continue; }
    const kind = kindOf(file);
    const path = `/sim/upload?kind=${kind}&name=${encodeURIComponent(file.name)}`;
    const response = await fetch(path, { method: "POST", body: file, headers: { "content-type": file.type || "application/octet-stream" } });
    const json = await response.json();
    if (!response.ok) throw new Error(json.error);
    if (album.length && (album[0].kind !== kind || album.length === 10 || ["voice", "animation"].includes(kind))) await flush();
    album.push({ kind, id: json.file_id });
  }
  await flush();
  $("text").value = "";
  fit();
}

$("attach").onclick = (event) => {
  event.preventDefault();
  const entry = (text, work) => button(text, () => { $("attachments").hidePopover(); work(); }, { role: "menuitem" });
  openAt($("attachments"), $("attach"), [
    entry("Photo or video", () => chooseFiles("image/*,video/*", kindByType)),
    entry("File", () => chooseFiles("", () => "document")),
    entry("Voice message", () => chooseFiles("audio/*", () => "voice")),
    entry("Music", () => chooseFiles("audio/*", () => "audio")),
    entry("Place", () => attempt(sendPlace)),
    entry("Contact", () => attempt(sendContact)),
    entry("Sticker", () => attempt(() => sendEmoji("sticker", "Sticker", ["👍", "🎉", "❤️", "😂", "🐱", "🚀"]))),
    entry("Dice", () => attempt(() => sendEmoji("dice", "Dice", ["🎲", "🎯", "🏀", "⚽", "🎳", "🎰"]))),
  ]);
};

// Text

function submit() {
  const text = $("text").value.trim();
  if (!text || !state.chat) return;
  const { editing, replying, chat, me: user, thread } = state;
  $("text").value = "";
  state.editing = undefined;
  stop();
  suggest();
  attempt(async () => {
    try {
      if (editing) await api("/sim/edit", { chat: editing.chat.id, user, message_id: editing.message_id, text });
      else await api("/sim/say", { chat: chat.id, user, text, thread: thread ?? null, reply_to: replying?.message_id ?? null });
    } catch (error) {
      // What was typed is not lost.
      if (!$("text").value) $("text").value = text;
      throw error;
    }
  });
}

export function fit() {
  const text = $("text");
  text.style.height = "auto";
  text.style.height = `${text.scrollHeight + 2}px`;
}

$("send").append(icon("send"));
$("attach").append(icon("clip"));
$("menu").onclick = () => {
  const menu = state.chat?.menu_button;
  if (menu?.type === "web_app" && state.chat.type === "private") attempt(() => app(menu.text, menu.web_app?.url));
  else toggleCommands();
};
$("composer").onsubmit = (event) => { event.preventDefault(); submit(); };
$("text").oninput = () => { suggest(); fit(); };
$("text").onpaste = (event) => {
  const files = [...event.clipboardData.files];
  if (files.length) { event.preventDefault(); attempt(() => sendFiles(files)); }
};
$("text").onkeydown = (event) => {
  if (event.isComposing) return;
  if (panelKey(event)) return event.preventDefault();
  if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); submit(); }
  else if (event.key === "Escape" && (state.editing || state.replying)) stop();
  else if (event.key === "ArrowUp" && !$("text").value) {
    const mine = ordered().findLast((message) => message.from?.id === state.me && message.text);
    if (mine) { event.preventDefault(); edit(mine); }
  }
};
const main = document.querySelector("main");
main.ondragover = (event) => { if (event.dataTransfer.types.includes("Files")) event.preventDefault(); };
main.ondrop = (event) => { event.preventDefault(); attempt(() => sendFiles([...event.dataTransfer.files])); };
