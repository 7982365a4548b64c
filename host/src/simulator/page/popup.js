// Menus that hang on a button: what can be attached, and what can be done with a message. The browser closes them on
// Escape and on a click elsewhere.

import { $, arrows, button, el } from "./dom.js";
import { summary } from "./cards.js";
import { act, actHere, attempt, isAdmin, isGroup, nameOf, state, titleOf, toast } from "./state.js";
import { ask } from "./dialogs.js";

const QUICK = ["👍", "❤", "🔥", "🎉", "😁", "🤔", "👎", "😢"];

/** What the rest of the page does: `reply(message)`, `edit(message)`. */
export const chosen = {};

let opener;

/** Opens a menu at a button. */
export function openAt(popup, anchor, items) {
  opener = anchor;
  popup.replaceChildren(...items);
  popup.showPopover();
  const at = anchor.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = popup;
  const left = Math.max(8, Math.min(at.left, innerWidth - width - 8));
  const above = at.top - height - 6;
  const top = above > 8 ? above : Math.min(at.bottom + 6, innerHeight - height - 8);
  popup.style.left = `${left}px`;
  popup.style.top = `${Math.max(8, top)}px`;
  popup.querySelector("button")?.focus();
}

for (const id of ["actions", "attachments"]) {
  const popup = $(id);
  arrows(popup, "button");
  popup.addEventListener("toggle", ({ newState }) => {
    if (newState === "closed" && popup.contains(document.activeElement)) opener?.focus();
  });
}

const item = (text, work, properties = {}) => button(text, () => { $("actions").hidePopover(); attempt(async () => work()); }, { role: "menuitem", ...properties });

export function messageMenu(message, anchor) {
  const id = message.message_id;
  const mine = message.from?.id === state.me && !message.from_bot;
  const now = Object.entries(message.reactions ?? {}).find(([, users]) => users.includes(state.me))?.[0];
  const react = QUICK.map((emoji) => item(emoji, () => actHere("react", { message_id: id, emoji: emoji === now ? [] : [emoji] }), { "aria-label": `React with ${emoji}`, "aria-pressed": emoji === now ? "true" : "false" }));
  const text = message.text ?? message.caption;
  const may = !isGroup() || mine || isAdmin();
  const isPinned = state.chat.pinned === id;
  openAt($("actions"), anchor, [
    el("div", { className: "quick" }, react),
    item("Reply", () => chosen.reply(message)),
    mine && text ? item("Edit", () => chosen.edit(message)) : "",
    text ? item("Copy the text", () => navigator.clipboard.writeText(text)) : "",
    item("Forward…", () => forward(message)),
    !isGroup() || isAdmin() ? item(isPinned ? "Unpin" : "Pin", () => actHere("pin", { message_id: id, pinned: !isPinned })) : "",
    may ? item("Delete", () => actHere("delete", { message_id: id }), { className: "danger" }) : "",
  ].filter(Boolean));
}

async function forward(message) {
  const targets = state.chats.filter((chat) => chat.members.includes(state.me) && !chat.migrated_to && (chat.type !== "channel" || chat.admins.includes(state.me)));
  const options = targets.flatMap((chat) => [
    { value: `${chat.id}/0`, text: titleOf(chat) },
    ...chat.topics.map((topic) => ({ value: `${chat.id}/${topic.id}`, text: `${chat.title} › ${topic.name}` })),
  ]);
  const answer = await ask("Forward", [{ name: "to", label: `“${summary(message)}” to`, options }], "Forward");
  if (!answer) return;
  const [chat, thread] = answer.to.split("/").map(Number);
  await act("forward", { chat, user: state.me, thread: thread || null, from_chat: message.chat.id, message_id: message.message_id });
  toast(`Forwarded by ${nameOf(state.me)}.`);
}
