// One message as an element: author, quote, text, keyboard, time.

import { attachment, clock, el, formatted, hue, link, summary } from "./format.js";

/**
 * @param message as `/sim/messages` gives it
 * @param context `me` (who looks), `group` (show authors), `pressed` (set of buttons that wait for their answer),
 *   `say(text)`, `press(message, button)`, `edit(message)`
 */
export function messageElement(message, context) {
  const mine = message.from?.id === context.me && !message.from_bot;
  const bubble = el("div", { className: "bubble" });
  if (context.group && !mine) {
    const author = message.from ?? message.sender_chat;
    const name = el("div", { className: "author" }, author.first_name ?? author.title ?? "");
    name.style.setProperty("--hue", hue(author.id));
    bubble.append(name);
  }
  if (message.forward_origin) bubble.append(el("div", { className: "meta" }, "forwarded"));
  if (message.reply_to_message) bubble.append(el("p", { className: "quote" }, summary(message.reply_to_message)));
  const attached = attachment(message);
  if (attached) bubble.append(attached);
  const text = message.text ?? message.caption;
  if (text) {
    const nodes = formatted(text, message.entities ?? message.caption_entities, context.say);
    bubble.append(el("div", { className: "text", dir: "auto" }, ...nodes));
  }
  bubble.append(footer(message, mine, context));
  const element = el("article", { className: mine ? "message mine" : "message" }, bubble);
  const rows = message.reply_markup?.inline_keyboard ?? [];
  if (rows.length) element.append(inlineKeyboard(message, rows, context));
  return element;
}

function footer(message, mine, context) {
  const parts = [];
  if (message.reactions) parts.push(el("span", { className: "reactions" }, message.reactions.join(" ")));
  if (mine && message.text) parts.push(el("button", { type: "button", onclick: () => context.edit(message) }, "edit"));
  if (message.edit_date) parts.push("edited");
  const time = el("time", { dateTime: new Date(message.date * 1000).toISOString() }, clock(message.date));
  return el("div", { className: "meta" }, ...parts, time);
}

function inlineKeyboard(message, rows, context) {
  const button = (button, at) => {
    if (button.url) return link(button.url, `${button.text} ↗`);
    const waiting = context.pressed.has(at);
    const usable = button.callback_data !== undefined || button.pay;
    return el("button", {
      type: "button",
      className: waiting ? "busy" : "",
      "aria-busy": waiting ? "true" : undefined,
      disabled: !usable,
      title: usable ? undefined : "The simulator can't follow this kind of button",
      onclick: () => context.press(message, button, at),
    }, button.text);
  };
  const line = (row, y) => el("div", { className: "row" }, ...row.map((item, x) => button(item, `${message.chat.id}/${message.message_id}/${y}/${x}`)));
  return el("div", { className: "inline" }, ...rows.map(line));
}
