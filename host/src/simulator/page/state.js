// What the page knows, and what its parts share: the server, and short notices.

import { $, el } from "./dom.js";

export const state = {
  bot: { id: 0, first_name: "" },
  users: [],
  chats: [],
  me: Number(localStorage.getItem("me")) || 0,
  chat: undefined,          // the chat that is open
  thread: undefined,        // and its topic
  messages: new Map(),      // of the open chat, by id
  gone: new Map(),          // those that were deleted before one's eyes: id → who did it
  unread: new Map(),        // per chat and topic
  pressed: new Map(),       // buttons that wait for an answer: place → query id
  waiting: new Map(),       // queries whose answer a dialog waits for: id → function
  typing: undefined,
  commands: [],
  editing: undefined,
  replying: undefined,
  keyboardUsed: undefined,  // the message whose one-time keyboard was used
};

export async function api(path, body) {
  const request = body && { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  const response = await fetch(path, request).catch(() => { throw new Error("The simulator does not answer."); });
  const json = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(json.error ?? `the simulator answered ${response.status}`);
  return json;
}

/** Something that the person does; see `sim_api/play.rs`. */
export const act = (what, fields) => api("/sim/do", { what, ...fields });

/** The same in the open chat. */
export const actHere = (what, fields) => act(what, { chat: state.chat.id, user: state.me, ...fields });

export function attempt(work) {
  return work().catch((error) => toast(sentence(error.message)));
}

const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1).replace(/([^.!?…])$/, "$1.");

export const placeOf = (chat, thread) => `${chat}/${thread ?? 0}`;
export const here = () => state.chat && placeOf(state.chat.id, state.thread);
export const isAdmin = (user = state.me) => Boolean(state.chat?.admins.includes(user));
export const topic = () => state.chat?.topics.find((known) => known.id === state.thread);
export const mayWrite = () => Boolean(state.chat) && state.chat.members.includes(state.me)
  && (state.chat.type !== "channel" || isAdmin()) && (!topic()?.closed || isAdmin());
export const isGroup = () => Boolean(state.chat) && state.chat.type !== "private";
export const inView = (message) => !state.chat?.topics.length || (message.message_thread_id ?? 0) === (state.thread ?? 0);
export const ordered = () => [...state.messages.values()].filter(inView).sort((a, b) => a.message_id - b.message_id);
export const nameOf = (id) => (id === state.bot.id ? state.bot : state.users.find((user) => user.id === id))?.first_name ?? `user ${id}`;
export const titleOf = (chat) => (chat.type === "private" ? (chat.id === state.me ? state.bot.first_name : `${chat.first_name} with ${state.bot.first_name}`) : chat.title);

export function toast(text) {
  const element = el("div", { className: "toast" }, text);
  $("toasts").append(element);
  setTimeout(() => element.remove(), 3000 + text.length * 40);
}
