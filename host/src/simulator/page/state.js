// What the page knows, and what its parts share: the server, elements by id, and short notices.

import { el } from "./format.js";

export const $ = (id) => document.getElementById(id);
export const state = {
  bot: { id: 0, first_name: "" },
  users: [],
  chats: [],
  me: Number(localStorage.getItem("me")) || 0,
  chat: undefined,          // the chat that is open
  thread: undefined,        // and its topic
  messages: new Map(),      // of the open chat, by id
  unread: new Map(),        // per chat and topic
  pressed: new Map(),       // buttons that wait for an answer: place → query id
  typing: undefined,
  commands: [],
  suggested: [],
  choice: 0,
  editing: undefined,
  keyboardUsed: undefined,  // the message whose one-time keyboard was used
};

export async function api(path, body) {
  const request = body && { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  const response = await fetch(path, request).catch(() => { throw new Error("The simulator does not answer."); });
  const json = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(json.error ?? `the simulator answered ${response.status}`);
  return json;
}

export function attempt(work) {
  return work().catch((error) => toast(error.message));
}

export const placeOf = (chat, thread) => `${chat}/${thread ?? 0}`;
export const here = () => state.chat && placeOf(state.chat.id, state.thread);
export const mayWrite = () => state.chat?.type !== "channel" || state.chat.admins.includes(state.me);
export const isGroup = () => state.chat && state.chat.type !== "private";
export const inView = (message) => !state.chat?.topics.length || (message.message_thread_id ?? 0) === (state.thread ?? 0);
export const ordered = () => [...state.messages.values()].filter(inView).sort((a, b) => a.message_id - b.message_id);

export function toast(text) {
  const element = el("div", { className: "toast" }, text);
  $("toasts").append(element);
  setTimeout(() => element.remove(), 3000 + text.length * 40);
}
