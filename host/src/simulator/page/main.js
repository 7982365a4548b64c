// The page as a whole: who one is, which chat is open, and what happens in it.
//
// The state is in one place; the server's event stream and a person's doings change it, and the part of the page that
// shows it is drawn anew. After an interruption everything is read again.

import { aboutChanged, editPerson, newChat, otherChatItem, otherChats } from "./about.js";
import { summary } from "./cards.js";
import { readClock } from "./clock.js";
import { drawComposer, drawOnce, edit, obey, reply, say, stop, type } from "./composer.js";
import { alertBox } from "./dialogs.js";
import { $, arrows, avatar, button, el, icon } from "./dom.js";
import { chatChanged, look } from "./inside.js";
import { drawMessages, forgetMessages, goTo, offerNewer } from "./log.js";
import { inlineAnswered, onCommand, suggest } from "./panel.js";
import { pay } from "./pay.js";
import { chosen, messageMenu } from "./popup.js";
import { actHere, api, attempt, here, inView, isAdmin, isGroup, nameOf, placeOf, state, titleOf, toast, topic } from "./state.js";
import { doings } from "./view.js";

// Reading

async function readChats() {
  const { bot, users, chats } = await api("/sim/chats");
  Object.assign(state, { bot, users, chats });
  if (!users.some((user) => user.id === state.me)) state.me = users[0]?.id ?? 0;
  if (state.chat) state.chat = myChats().find((chat) => chat.id === state.chat.id);
  drawPeople();
  drawChats();
}

async function readMessages() {
  const { chat } = state;
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
  look();
  await Promise.all([readMessages(), readCommands(), readClock()]);
}

// Choosing

const myChats = () => state.chats.filter((chat) => chat.members.includes(state.me) && !chat.migrated_to);

function become(user, show = false) {
  state.me = user;
  localStorage.setItem("me", user);
  const kept = state.chat && state.chat.members.includes(user) && state.chat.type !== "private" ? state.chat : myChats()[0];
  drawPeople();
  open(kept, kept === state.chat ? state.thread : undefined, show);
}

function open(chat, thread, show = true) {
  state.chat = chat;
  state.thread = thread;
  state.messages.clear();
  state.gone.clear();
  forgetMessages();
  state.typing = undefined;
  stop();
  state.commands = [];
  if (show) document.body.dataset.view = "chat";
  state.unread.delete(here());
  if (chat) history.replaceState(null, "", `#${state.me}/${chat.id}/${thread ?? 0}`);
  drawChats();
  drawChat();
  drawLog(true);
  chatChanged();
  attempt(() => Promise.all([readMessages(), readCommands()]));
  if (show && matchMedia("(min-width: 48rem)").matches) $("text").focus();
}

// Drawing

function drawPeople() {
  document.title = `${state.bot.first_name} · Botyard playground`;
  drawOnce("person", [state.users, state.me], () => state.users.map((user) =>
    el("option", { value: user.id, selected: user.id === state.me }, `${user.first_name} ${user.last_name ?? ""} (${user.language_code ?? "no language"})`)));
}

function drawChats() {
  const focused = document.activeElement?.closest("#chats button")?.dataset.place;
  const items = [];
  for (const chat of myChats()) {
    items.push(chatItem(chat, undefined, titleOf(chat), summary(chat.last)));
    for (const one of chat.topics) items.push(chatItem(chat, one.id, one.closed ? `${one.name} (closed)` : one.name));
  }
  $("chats").replaceChildren(...items);
  if (focused) $("chats").querySelector(`[data-place="${focused}"]`)?.focus();
  const others = otherChats();
  $("others").hidden = !others.length;
  $("others").querySelector("ul").replaceChildren(...others.map(otherChatItem));
}

function chatItem(chat, thread, title, preview) {
  const place = placeOf(chat.id, thread);
  const unread = state.unread.get(place);
  const lines = el("span", { className: "lines" }, el("span", { className: "name" }, title), preview === undefined ? "" : el("span", { className: "preview" }, preview || "No messages yet"));
  const requests = !thread && chat.requests.length && chat.admins.includes(state.me) ? el("span", { className: "unread ask", title: `${chat.requests.length} ask to join` }, "?") : "";
  const badge = unread ? el("span", { className: "unread", "aria-label": `${unread} new` }, unread) : "";
  const face = thread ? avatar(200, title, "#") : avatar(chat.type === "private" ? state.bot.id : chat.id, title);
  const key = button([face, lines, requests, badge], () => open(chat, thread), { "aria-current": place === here() ? "true" : undefined, "data-place": place });
  return el("li", { className: thread ? "topic" : "" }, key);
}

function subtitle(chat) {
  if (chat.blocked) return chat.type === "private" ? "you have blocked the bot" : "the bot has been removed";
  if (chat.type === "private") return `@${state.bot.username}`;
  const kind = chat.topics.length ? "forum" : chat.type;
  return `${kind}: ${chat.members.map(nameOf).join(", ")}`;
}

function drawChat() {
  const { chat } = state;
  $("title").textContent = !chat ? "Choose a chat" : topic() ? `${chat.title} › ${topic().name}` : titleOf(chat);
  const typing = state.typing && `${state.bot.first_name} is ${state.typing}…`;
  $("subtitle").className = typing ? "typing" : "";
  $("subtitle").textContent = typing || (chat ? subtitle(chat) : "");
  $("about").disabled = !chat;
  drawPinned();
  drawComposer();
}

function drawPinned() {
  const message = state.chat && state.messages.get(state.chat.pinned);
  $("pinned").hidden = !message;
  if (!message) return;
  const show = button([icon("pin"), el("span", {}, el("strong", {}, "Pinned"), el("span", { className: "quiet" }, summary(message)))], () => goTo(message.message_id));
  const may = !isGroup() || isAdmin();
  $("pinned").replaceChildren(show, may ? button(icon("close"), () => attempt(() => actHere("pin", { message_id: message.message_id, pinned: false })), { className: "icon", "aria-label": "Unpin" }) : "");
}

const drawLog = (goToEnd = false) => drawMessages(emptyChat, goToEnd);

function emptyChat() {
  const text = el("p", {}, isGroup() ? "Nothing has been said here yet." : `${state.bot.first_name} does not know ${nameOf(state.me)} yet.`);
  return el("div", { className: "empty" }, text, isGroup() ? "" : button("Start", () => say("/start"), { className: "primary" }));
}

// Doing

function press(message, item, place) {
  if (state.pressed.has(place)) return;
  state.pressed.set(place, undefined);
  drawLog();
  attempt(async () => {
    try {
      const pressed = { chat: message.chat.id, user: state.me, message_id: message.message_id, button: item.callback_data };
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

/** Hands an answer to the dialog that waits for it; false if none does. */
function hand(answer, tries = 20) {
  const waits = state.waiting.get(answer.id);
  if (!waits && $("dialog").open && tries && answer.user === state.me) {
    // It may be here before the dialog knows what it waits for.
    setTimeout(() => hand(answer, tries - 1), 50);
    return true;
  }
  state.waiting.delete(answer.id);
  waits?.(answer);
  return Boolean(waits);
}

Object.assign(doings, { say, press, pay: (message) => attempt(() => pay(message)), menu: messageMenu, go: goTo, type, open });
Object.assign(chosen, { reply, edit });
onCommand(say);

// Hearing

const ACTIONS = { typing: "typing", upload_photo: "sending a photo", upload_document: "sending a file", upload_video: "sending a video", upload_voice: "sending a voice message", record_voice: "recording", record_video: "recording", choose_sticker: "choosing a sticker", find_location: "looking for a place" };
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
    const isOpen = chat === state.chat?.id;
    if (isOpen) {
      state.messages.set(message.message_id, message);
      if (message.from_bot && state.typing) showTyping(undefined);
      drawLog(message.from?.id === state.me);
      offerNewer();
      drawChat();
      if (message.from_bot && inView(message)) obey(message);
    }
    if (message.from?.id !== state.me && !(isOpen && inView(message)) && known.members.includes(state.me)) {
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
    drawChat();
  },
  delete({ chat, message_id, by }) {
    const message = chat === state.chat?.id && state.messages.get(message_id);
    if (message) {
      if (inView(message)) state.gone.set(message_id, { by, place: here() });
      state.messages.delete(message_id);
      drawLog();
      drawChat();
    }
    attempt(readChats);
  },
  action({ chat, action }) {
    if (chat === state.chat?.id) showTyping(ACTIONS[action] ?? "busy");
  },
  answer(answer) {
    const { id, user, text, show_alert, url } = answer;
    if (release(id)) { /* it was a button that waited */ } else if (hand(answer)) return;
    else { answered.add(id); setTimeout(() => answered.delete(id), 30_000); }
    if (user !== state.me) return;
    if (url) toast(`The bot opens ${url}`);
    if (!text) return;
    if (show_alert) alertBox(state.bot.first_name, text);
    else toast(text);
  },
  shipping: (answer) => hand(answer),
  inline_answer({ id, user }) { if (user === state.me) inlineAnswered(id); },
  pin({ chat, message_id }) {
    const known = state.chats.find((entry) => entry.id === chat);
    if (known) known.pinned = message_id;
    drawChat();
  },
  commands: () => attempt(async () => { await readChats(); drawChat(); await readCommands(); }),
  chats: () => attempt(async () => {
    const had = state.chat;
    await readChats();
    if (had && !state.chat) open(myChats()[0], undefined, false);
    drawChat();
    aboutChanged();
  }),
  clock: () => attempt(readClock),
  activity: look,
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

for (const [id, name] of [["back", "back"], ["about", "info"], ["edit-person", "pencil"], ["new-person", "plus"]]) $(id).append(icon(name));
$("new-chat").append(icon("plus"), "New group or channel");
$("person").onchange = (event) => become(Number(event.target.value));
$("speaker").onchange = (event) => { become(Number(event.target.value), true); $("text").focus(); };
$("edit-person").onclick = () => attempt(() => editPerson(state.users.find((user) => user.id === state.me)));
$("new-person").onclick = () => attempt(async () => {
  const id = await editPerson();
  if (!id) return;
  await readChats();
  become(id);
});
$("new-chat").onclick = () => attempt(async () => {
  const id = await newChat();
  if (!id) return;
  await readChats();
  open(state.chats.find((chat) => chat.id === id));
});
$("back").onclick = () => { document.body.dataset.view = "list"; $("chats").querySelector("[aria-current]")?.focus(); };
$("log").addEventListener("keydown", (event) => {
  const article = document.activeElement?.closest("#log article");
  if (event.key === "Escape") { event.preventDefault(); $("text").focus(); }
  if (!article || document.activeElement !== article || !["Enter", "ContextMenu"].includes(event.key)) return;
  event.preventDefault();
  article.querySelector(".more")?.click();
});
arrows($("chats"), "button");

await attempt(readChats);
const [me, chat, thread] = location.hash.slice(1).split("/").map(Number);
if (state.users.some((user) => user.id === me)) state.me = me;
drawPeople();
const wanted = myChats().find((entry) => entry.id === chat);
open(wanted ?? myChats()[0], thread || undefined, Boolean(wanted));
listen();
