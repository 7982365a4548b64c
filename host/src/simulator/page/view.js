// One message, or one album, as an element: author, quote, content, keyboard, reactions, time.

import { leadsOut } from "./buttons.js";
import { cardOf, mediaOf, noteOf, summary } from "./cards.js";
import { button, clock, el, hue, icon } from "./dom.js";
import { formatted, link } from "./format.js";
import { actHere, attempt, isGroup, nameOf, state } from "./state.js";

/** What the messages need done: `say(text)`, `press(message, button, place)`, `pay(message)`, `menu(message, anchor)`, `go(id)`, `type(text)`, `open(chat)`. */
export const doings = {};

const isMine = (message) => message.from?.id === state.me && !message.from_bot;

export function messageElement(album) {
  const [message] = album;
  const note = noteOf(message);
  if (note) return el("article", { className: "note", id: `message-${message.message_id}`, tabIndex: -1 }, note);
  const mine = isMine(message);
  const bare = Boolean(message.sticker || message.dice);
  const bubble = el("div", { className: bare ? "bubble bare" : "bubble" });
  if (isGroup() && !mine) {
    const author = message.from ?? message.sender_chat;
    const name = el("div", { className: "author" }, author.first_name ?? author.title ?? "");
    name.style.setProperty("--hue", hue(author.id));
    bubble.append(name);
  }
  if (message.via_bot) bubble.append(el("div", { className: "via" }, `via @${message.via_bot.username}`));
  if (message.forward_origin) bubble.append(el("div", { className: "via" }, `Forwarded from ${originName(message.forward_origin)}`));
  if (message.reply_to_message) bubble.append(quote(message.reply_to_message));
  const pictures = album.map(mediaOf).filter(Boolean);
  if (pictures.length > 1) bubble.append(el("div", { className: "album", "data-count": pictures.length }, pictures));
  else if (pictures.length) bubble.append(pictures[0]);
  const card = cardOf(message);
  if (card) bubble.append(card);
  const texts = album.filter((part) => part.text ?? part.caption).map((part) =>
    el("div", { className: "text", dir: "auto" }, formatted(part.text ?? part.caption, part.entities ?? part.caption_entities, doings.say)));
  // A short text has the time beside it.
  bubble.append(...texts.slice(0, -1), el("div", { className: "tail" }, texts.at(-1), footer(message)), moreButton(message, mine));
  const element = el("article", { className: mine ? "message mine" : "message", id: `message-${message.message_id}`, tabIndex: -1, "aria-label": `${mine ? "You" : nameOf(message.from?.id) ?? ""}, ${clock(message.date)}` }, bubble);
  const rows = message.reply_markup?.inline_keyboard ?? [];
  if (rows.length) element.append(inlineKeyboard(message, rows));
  const reactions = Object.entries(message.reactions ?? {});
  if (reactions.length) element.append(el("div", { className: "reactions" }, reactions.map(([emoji, users]) => reaction(message, emoji, users))));
  return element;
}

const originName = (origin) => origin.sender_user?.first_name ?? origin.sender_user_name ?? (origin.chat ?? origin.sender_chat)?.title ?? "somebody";

function quote(original) {
  const author = original.from?.first_name ?? original.sender_chat?.title ?? "";
  return button([el("strong", {}, author), el("span", {}, summary(original))], () => doings.go(original.message_id), { className: "quote" });
}

function footer(message) {
  const time = el("time", { dateTime: new Date(message.date * 1000).toISOString() }, clock(message.date));
  const edited = message.edit_date && el("span", { title: `edited at ${clock(message.edit_date)}` }, "edited");
  return el("div", { className: "meta" }, edited, time);
}

const moreButton = (message, mine) => button(icon("more"), ({ currentTarget }) => doings.menu(message, currentTarget),
  { className: "more", "aria-label": `What to do with ${mine ? "your" : "this"} message`, "aria-haspopup": "menu" });

function reaction(message, emoji, users) {
  const mine = users.includes(state.me);
  const others = Object.entries(message.reactions).filter(([other, by]) => other !== emoji && by.includes(state.me)).map(([other]) => other);
  const toggle = () => attempt(() => actHere("react", { message_id: message.message_id, emoji: mine ? others : [emoji] }));
  return button([emoji, el("span", {}, users.length)], toggle, { "aria-pressed": mine ? "true" : "false", title: users.map(nameOf).join(", ") });
}

function inlineKeyboard(message, rows) {
  const key = (item, place) => {
    if (item.url) return link(item.url, `${item.text} ↗`);
    if (item.pay) return button(item.text, () => doings.pay(message), { className: "primary" });
    if (item.callback_data !== undefined) {
      const waiting = state.pressed.has(place);
      return button(item.text, () => doings.press(message, item, place), { className: waiting ? "busy" : "", "aria-busy": waiting ? "true" : undefined });
    }
    return leadsOut(item, doings) ?? button(item.text, undefined, { disabled: true, title: "The playground can't follow this kind of button" });
  };
  const line = (row, y) => el("div", { className: "row" }, row.map((item, x) => key(item, `${message.chat.id}/${message.message_id}/${y}/${x}`)));
  return el("div", { className: "inline" }, rows.map(line));
}
