// People and chats: making them, renaming them, and who is in a chat as what.

import { $, avatar, button, el } from "./dom.js";
import { ask, closeDialog, show } from "./dialogs.js";
import { act, actHere, api, attempt, isAdmin, nameOf, state, titleOf } from "./state.js";

const personFields = (user = {}) => [
  { name: "first_name", label: "First name", value: user.first_name, required: true },
  { name: "last_name", label: "Last name", value: user.last_name },
  { name: "username", label: "Username", value: user.username, hint: "letters, digits and _; may be empty" },
  { name: "language_code", label: "Language", value: user.language_code ?? "", hint: "as the client sends it, like en or pt-br; empty if it sends none", maxLength: 12 },
];

/** Asks for somebody new, or another name; answers their id. */
export async function editPerson(user) {
  const fields = await ask(user ? `Change ${user.first_name}` : "New person", personFields(user), user ? "Change" : "Add");
  return fields && (await act("person", { id: user?.id ?? null, ...fields })).id;
}

/** Asks for a new chat; answers its id. */
export async function newChat() {
  const others = state.users.filter((user) => user.id !== state.me);
  const fields = await ask("New chat", [
    { name: "kind", label: "Kind", options: [
      { value: "group", text: "Group" }, { value: "supergroup", text: "Supergroup" },
      { value: "forum", text: "Forum: a supergroup with topics" }, { value: "channel", text: "Channel" },
    ] },
    { name: "title", label: "Title", required: true, maxLength: 128 },
    { name: "topics", label: "Topics", hint: "of a forum, with commas between them", placeholder: "News, Help" },
    { name: "members", label: "Beside you and the bot", boxes: others.map((user) => ({ value: user.id, text: user.first_name, checked: true })) },
  ], "Make it");
  if (!fields) return undefined;
  const isForum = fields.kind === "forum";
  const topics = isForum ? fields.topics.split(",").map((name) => name.trim()).filter(Boolean) : [];
  if (isForum && !topics.length) topics.push("General talk");
  const members = [state.me, ...fields.members.map(Number)];
  return (await act("chat", { type: isForum ? "supergroup" : fields.kind, title: fields.title, members, by: state.me, topics })).id;
}

/** One is not in these, but could ask to be. */
export function otherChats() {
  return state.chats.filter((chat) => chat.type !== "private" && !chat.migrated_to && !chat.members.includes(state.me));
}

export function otherChatItem(chat) {
  const asked = chat.requests.includes(state.me);
  const join = chat.type === "group"
    ? button("Join", () => attempt(() => act("member", { chat: chat.id, user: state.me, of: state.me, standing: "member" })), { className: "small" })
    : el("span", {},
      button("Join", () => attempt(() => act("member", { chat: chat.id, user: state.me, of: state.me, standing: "member" })), { className: "small" }),
      button(asked ? "Asked" : "Ask to join", () => attempt(() => askToJoin(chat)), { className: "small", disabled: asked }));
  return el("li", { className: "other" }, avatar(chat.id, chat.title), el("span", { className: "name" }, chat.title), join);
}

async function askToJoin(chat) {
  const fields = await ask(`Ask to join ${chat.title}`, [{ name: "bio", label: "About you", hint: "what the administrators and the bot see" }], "Ask");
  if (fields) await act("ask_to_join", { chat: chat.id, user: state.me, bio: fields.bio || null });
}

// About one chat

export function about() {
  const { chat } = state;
  if (!chat) return;
  const body = el("div", { className: "about" });
  const draw = () => body.replaceChildren(...(state.chat.type === "private" ? privateChat(draw) : group(draw)));
  redraw = draw;
  draw();
  show(titleOf(chat), body, el("div", { className: "foot" }, button("Close", closeDialog, { className: "primary" }))).then(() => { redraw = undefined; });
}

let redraw;
/** The chats have changed: so may what the dialog says. */
export const aboutChanged = () => redraw && state.chat && redraw();

const work = (text, doing, properties) => button(text, () => attempt(async () => doing()), { className: "small", ...properties });

function privateChat() {
  const { chat } = state;
  const block = () => api("/sim/block", { chat: chat.id, user: state.me, blocked: !chat.blocked });
  return [
    el("p", {}, chat.blocked ? `${nameOf(chat.id)} has blocked the bot: it can't write here.` : `${nameOf(chat.id)} and the bot.`),
    el("p", {}, work(chat.blocked ? "Unblock the bot" : "Block the bot", block, { className: chat.blocked ? "small" : "small danger" })),
    facts(),
  ];
}

const facts = () => el("p", { className: "quiet" }, `chat id ${state.chat.id} · ${state.chat.type}${state.chat.username ? ` · @${state.chat.username}` : ""}`);

function group() {
  const { chat } = state;
  const admin = isAdmin();
  const owner = chat.admins[0];
  const set = (of, standing) => () => actHere("member", { of, standing });
  const member = (id) => {
    const role = id === owner ? "owner" : chat.admins.includes(id) ? "administrator" : "";
    const deeds = admin && id !== owner ? [
      role ? work("Make a member", set(id, "member")) : work("Make admin", set(id, "administrator")),
      work("Remove", set(id, "left")),
      work("Ban", set(id, "kicked"), { className: "small danger" }),
    ] : [];
    if (id === state.me) deeds.push(work("Leave", async () => { closeDialog(); await set(id, "left")(); }));
    return el("li", {}, avatar(id, nameOf(id)), el("span", { className: "name" }, nameOf(id), role && el("span", { className: "quiet" }, ` ${role}`)), el("span", { className: "deeds" }, deeds));
  };
  const requests = chat.requests.map((id) => el("li", {}, avatar(id, nameOf(id)), el("span", { className: "name" }, nameOf(id), el("span", { className: "quiet" }, " asks to join")),
    el("span", { className: "deeds" }, admin ? [work("Let in", () => actHere("decide", { of: id, let_in: true })), work("Decline", () => actHere("decide", { of: id, let_in: false }))] : [])));
  const absent = state.users.filter((user) => !chat.members.includes(user.id));
  const select = el("select", { "aria-label": "Who joins" }, absent.map((user) => el("option", { value: user.id }, user.first_name)));
  const add = absent.length ? el("p", { className: "line add" }, select, work("Add", () => actHere("member", { of: Number(select.value), standing: "member" }))) : "";
  const again = (opened) => { if (opened) about(); };
  const topics = chat.topics.map((topic) => el("li", {}, el("span", { className: "name" }, `# ${topic.name}`, topic.closed && el("span", { className: "quiet" }, " closed")),
    el("span", { className: "deeds" }, admin ? [
      work("Rename", async () => again(await renameTopic(topic))),
      work(topic.closed ? "Reopen" : "Close", () => actHere("change_topic", { thread: topic.id, change: topic.closed ? "reopen" : "close" })),
      work("Delete", () => actHere("change_topic", { thread: topic.id, change: "delete" }), { className: "small danger" }),
    ] : [])));
  return [
    el("p", { className: "line" },
      admin && work("Rename", async () => again(await renameChat())),
      admin && chat.type === "supergroup" && work("New topic", async () => again(await newTopic())),
      admin && chat.type === "group" && work("Make it a supergroup", async () => { closeDialog(); await api("/sim/migrate", { group: chat.id }); }),
      admin && work(chat.blocked ? "Bring the bot back" : "Remove the bot", () => api("/sim/block", { chat: chat.id, user: state.me, blocked: !chat.blocked }))),
    admin ? "" : el("p", { className: "quiet" }, `${nameOf(state.me)} is no administrator here; speak as one to change things.`),
    requests.length ? el("ul", { className: "people" }, requests) : "",
    el("h3", {}, `${chat.members.length} people and the bot${chat.blocked ? " (removed)" : ""}`),
    el("ul", { className: "people" }, chat.members.map(member)),
    admin ? add : "",
    topics.length ? el("h3", {}, "Topics") : "",
    topics.length ? el("ul", { className: "people" }, topics) : "",
    facts(),
  ].filter(Boolean);
}

async function renameChat() {
  const fields = await ask("Rename the chat", [{ name: "title", label: "Title", value: state.chat.title, required: true, maxLength: 128 }], "Rename");
  if (fields) await actHere("rename", fields);
  return fields;
}

async function newTopic() {
  const fields = await ask("New topic", [{ name: "name", label: "Name", required: true, maxLength: 128 }], "Open it");
  if (fields) await actHere("topic", fields);
  return fields;
}

async function renameTopic(topic) {
  const fields = await ask("Rename the topic", [{ name: "name", label: "Name", value: topic.name, required: true, maxLength: 128 }], "Rename");
  if (fields) await actHere("change_topic", { thread: topic.id, change: { rename: fields.name } });
  return fields;
}

$("about").onclick = about;
