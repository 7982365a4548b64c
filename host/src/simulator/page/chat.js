// The chat page: who one is, which chat is open, and what happens in it.
//
// The state is in one place; the server's event stream and a person's doings change it, and the part of the page
// that shows it is drawn anew. After an interruption everything is read again.

import { avatar, el, summary } from "./format.js";
import { drawMessages, forgetMessages, offerNewer } from "./log.js";
import { $, api, attempt, here, inView, isGroup, mayWrite, ordered, placeOf, state, toast } from "./state.js";
import { onCommand, suggest, suggestionKey } from "./suggest.js";

// Reading

async function readChats() {
  const { bot, users, chats } = await api("/sim/chats");
  Object.assign(state, { bot, users, chats });
  if (!users.some((user) => user.id === state.me)) state.me = users[0]?.id ?? 0;
  if (state.chat) state.chat = chats.find((chat) => chat.id === state.chat.id);
  drawPeople();
  drawChats();
}

async function readMessages() {
  const chat = state.chat;
  if (!chat) return;
  const { messages } = await api(`/sim/messages?chat=${chat.id}&limit=300`);
  if (chat.id !== state.chat?.id) return;
  for (const message of messages) {
    const known = state.messages.get(message.message_id);
    if (!known || (known.edit_date ?? 0) <= (message.edit_date ?? 0)) state.messages.set(message.message_id, message);
  }
  drawLog(true);
  drawChat();
}

async function readCommands() {
  if (!state.chat) return;
  state.commands = await api(`/sim/commands?chat=${state.chat.id}&user=${state.me}`);
  suggest();
}

async function readAll() {
  await readChats();
  state.messages.clear();
  await Promise.all([readMessages(), readCommands()]);
}

// Choosing

const myChats = () => state.chats.filter((chat) => chat.members.includes(state.me) && !chat.migrated_to);

function become(user) {
  state.me = user;
  localStorage.setItem("me", user);
  const kept = state.chat && state.chat.members.includes(user) ? state.chat : myChats()[0];
  drawPeople();
  open(kept, kept === state.chat ? state.thread : undefined, false);
}

function open(chat, thread, show = true) {
  state.chat = chat;
  state.thread = thread;
  state.messages.clear();
  forgetMessages();
  state.typing = state.editing = undefined;
  state.commands = [];
  if (show) document.body.dataset.view = "chat";
  state.unread.delete(here());
  if (chat) history.replaceState(null, "", `#${state.me}/${chat.id}/${thread ?? 0}`);
  drawChats();
  drawChat();
  drawLog(true);
  attempt(() => Promise.all([readMessages(), readCommands()]));
  if (show && matchMedia("(min-width: 45.01rem)").matches) $("text").focus();
}

// Drawing

function drawPeople() {
  document.title = `${state.bot.first_name} · Botyard simulator`;
  $("bot").textContent = `${state.bot.first_name} (@${state.bot.username})`;
  $("person").replaceChildren(...state.users.map((user) =>
    el("option", { value: user.id, selected: user.id === state.me }, `${user.first_name} ${user.last_name ?? ""} (${user.language_code ?? "no language"})`)));
}

function drawChats() {
  const items = [];
  for (const chat of myChats()) {
    const title = chat.type === "private" ? state.bot.first_name : chat.title;
    items.push(chatItem(chat, undefined, title, summary(chat.last)));
    for (const topic of chat.topics) items.push(chatItem(chat, topic.id, topic.name));
  }
  $("chats").replaceChildren(...items);
}

function chatItem(chat, thread, title, preview) {
  const place = placeOf(chat.id, thread);
  const unread = state.unread.get(place);
  const lines = el("span", {}, el("span", { className: "name" }, title), preview === undefined ? "" : el("span", { className: "preview" }, preview || "No messages yet"));
  const badge = unread ? el("span", { className: "unread", "aria-label": `${unread} new` }, unread) : "";
  const face = thread ? el("span", { className: "avatar", "aria-hidden": "true" }, "#") : avatar(chat.type === "private" ? state.bot.id : chat.id, title);
  if (thread) face.style.setProperty("--hue", 200);
  const button = el("button", { type: "button", "aria-current": place === here() ? "true" : undefined, onclick: () => open(chat, thread) }, face, lines, badge);
  return el("li", { className: thread ? "topic" : "" }, button);
}

function drawChat() {
  const chat = state.chat;
  const topic = chat?.topics.find((topic) => topic.id === state.thread);
  $("title").textContent = !chat ? "Choose a chat" : chat.type === "private" ? state.bot.first_name : topic ? `${chat.title} › ${topic.name}` : chat.title;
  const members = () => chat.members.map((id) => state.users.find((user) => user.id === id)?.first_name).filter(Boolean).join(", ");
  const typing = state.typing && `${state.bot.first_name} is ${state.typing}…`;
  $("subtitle").className = typing ? "typing" : "";
  $("subtitle").textContent = typing || (!chat ? "" : chat.type === "private" ? "bot" : chat.type === "channel" ? "channel" : `${members()}, ${state.bot.first_name}`);
  $("block").hidden = chat?.type !== "private";
  $("block").textContent = chat?.blocked ? "Unblock bot" : "Block bot";
  $("editing").hidden = !state.editing;
  for (const control of [$("text"), $("send"), $("menu")]) control.disabled = !chat || !mayWrite();
  drawKeyboard();
}

const context = () => ({
  me: state.me, group: isGroup(), pressed: state.pressed, say, press,
  edit: (message) => startEditing(message),
});

const drawLog = (goToEnd = false) => drawMessages(context(), emptyChat, goToEnd);

function emptyChat() {
  const text = el("p", {}, isGroup() ? "Nothing has been said here yet." : `${state.bot.first_name} does not know you yet.`);
  return el("div", { className: "empty" }, text, isGroup() ? "" : el("button", { type: "button", onclick: () => say("/start") }, "Start"));
}

function drawKeyboard() {
  const source = ordered().findLast((message) => message.from_bot && message.keyboard);
  const keyboard = source?.keyboard;
  const rows = keyboard?.keyboard;
  const used = keyboard?.one_time_keyboard && state.keyboardUsed === `${state.chat.id}/${source.message_id}`;
  $("keyboard").hidden = !rows || used;
  const press = (text) => {
    if (keyboard.one_time_keyboard) state.keyboardUsed = `${state.chat.id}/${source.message_id}`;
    say(text);
  };
  $("keyboard").replaceChildren(...(rows ?? []).map((row) => el("div", { className: "row" },
    ...row.map((button) => el("button", { type: "button", onclick: () => press(button.text) }, button.text)))));
  const hint = used ? undefined : keyboard?.input_field_placeholder;
  $("text").placeholder = mayWrite() ? hint ?? "Message" : "Only administrators write here";
}

// Doing

function say(text) {
  const { chat, me: user, thread } = state;
  return attempt(() => api("/sim/say", { chat: chat.id, user, text, thread: thread ?? null }));
}

function press(message, button, place) {
  if (state.pressed.has(place)) return;
  state.pressed.set(place, undefined);
  drawLog();
  attempt(async () => {
    try {
      const pressed = { chat: message.chat.id, user: state.me, message_id: message.message_id, button: button.callback_data ?? button.text };
      const { query_id } = await api("/sim/press", pressed);
      if (state.pressed.has(place)) state.pressed.set(place, query_id);
      // Clients give up too.
      setTimeout(() => release(query_id), 30_000);
      if (answered.delete(query_id)) release(query_id);
    } catch (error) {
      state.pressed.delete(place);
      drawLog();
      throw error;
    }
  });
}

/** Answers that were here before the press had told its id. */
const answered = new Set();

function release(query) {
  for (const [place, id] of state.pressed) {
    if (id === query) {
      state.pressed.delete(place);
      drawLog();
      return true;
    }
  }
  return false;
}

function startEditing(message) {
  state.editing = message;
  $("text").value = message.text;
  drawChat();
  $("text").focus();
}

function stopEditing() {
  state.editing = undefined;
  $("text").value = "";
  drawChat();
  fit();
}

function submit() {
  const text = $("text").value.trim();
  if (!text || !state.chat) return;
  const editing = state.editing;
  $("text").value = "";
  stopEditing();
  suggest();
  const { chat, me: user, thread } = state;
  attempt(async () => {
    try {
      if (editing) await api("/sim/edit", { chat: editing.chat.id, user, message_id: editing.message_id, text });
      else await api("/sim/say", { chat: chat.id, user, text, thread: thread ?? null });
    } catch (error) {
      // What was typed is not lost.
      if (!$("text").value) $("text").value = text;
      throw error;
    }
  });
}

function fit() {
  const text = $("text");
  text.style.height = "auto";
  text.style.height = `${text.scrollHeight + 2}px`;
}

// Hearing

const ACTIONS = { typing: "typing", upload_photo: "sending a photo", upload_document: "sending a file", upload_video: "sending a video", record_voice: "recording", record_video: "recording", choose_sticker: "choosing a sticker", find_location: "looking for a place" };
let typingEnds;

function showTyping(action) {
  clearTimeout(typingEnds);
  state.typing = action;
  if (action) typingEnds = setTimeout(() => showTyping(undefined), 5000);
  drawChat();
}

const heard = {
  message({ chat, message }) {
    const known = state.chats.find((entry) => entry.id === chat);
    if (!known) return attempt(readChats);
    known.last = message;
    const open = chat === state.chat?.id;
    if (open) {
      state.messages.set(message.message_id, message);
      if (message.from_bot && state.typing) showTyping(undefined);
      drawLog(message.from?.id === state.me);
      offerNewer();
      drawChat();
    }
    if (message.from?.id !== state.me && !(open && inView(message))) {
      const place = placeOf(chat, known.topics.length ? message.message_thread_id : undefined);
      state.unread.set(place, (state.unread.get(place) ?? 0) + 1);
    }
    drawChats();
  },
  edit({ chat, message }) {
    const known = state.chats.find((entry) => entry.id === chat);
    if (known?.last?.message_id === message.message_id) { known.last = message; drawChats(); }
    if (chat !== state.chat?.id) return;
    state.messages.set(message.message_id, message);
    drawLog();
  },
  delete({ chat, message_id }) {
    if (chat === state.chat?.id && state.messages.delete(message_id)) { drawLog(); drawChat(); }
    attempt(readChats);
  },
  action({ chat, action }) {
    if (chat === state.chat?.id) showTyping(ACTIONS[action] ?? "busy");
  },
  answer({ id, user, text, show_alert, url }) {
    if (!release(id)) { answered.add(id); setTimeout(() => answered.delete(id), 30_000); }
    if (user !== state.me) return;
    if (url) toast(`The bot opens ${url}`);
    if (!text) return;
    if (!show_alert) return toast(text);
    $("alert-text").textContent = text;
    if (!$("alert").open) $("alert").showModal();
  },
  commands: () => attempt(readCommands),
  chats: () => attempt(async () => { await readChats(); drawChat(); }),
  reset: () => attempt(readAll),
};

function listen() {
  const events = new EventSource("/sim/events");
  events.onopen = () => {
    $("connection").textContent = "";
    attempt(readAll);
  };
  events.onerror = () => { $("connection").textContent = "The simulator does not answer; waiting for it …"; };
  events.onmessage = ({ data }) => {
    const event = JSON.parse(data);
    heard[event.event]?.(event);
  };
}

// Wiring

$("person").onchange = (event) => become(Number(event.target.value));
$("back").onclick = () => { document.body.dataset.view = "list"; $("chats").querySelector("[aria-current]")?.focus(); };
$("block").onclick = () => attempt(() => api("/sim/block", { chat: state.chat.id, user: state.me, blocked: !state.chat.blocked }));
$("composer").onsubmit = (event) => { event.preventDefault(); submit(); };
$("stop-editing").onclick = stopEditing;
$("text").oninput = () => { suggest(); fit(); };
$("text").onkeydown = (event) => {
  if (event.isComposing) return;
  if (suggestionKey(event)) return event.preventDefault();
  if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); submit(); }
  else if (event.key === "Escape" && state.editing) stopEditing();
  else if (event.key === "ArrowUp" && !$("text").value) {
    const mine = ordered().findLast((message) => message.from?.id === state.me && message.text);
    if (mine) { event.preventDefault(); startEditing(mine); }
  }
};

onCommand(say);

await attempt(readChats);
const [me, chat, thread] = location.hash.slice(1).split("/").map(Number);
if (state.users.some((user) => user.id === me)) state.me = me;
drawPeople();
const wanted = myChats().find((entry) => entry.id === chat);
open(wanted ?? myChats()[0], thread || undefined, Boolean(wanted));
listen();
