// Buttons that lead out of the chat. The playground goes nowhere by itself: it says what a real client would do, and
// hands the bot what would come of it.

import { ask, show } from "./dialogs.js";
import { button, el } from "./dom.js";
import { link } from "./format.js";
import { actHere, attempt, state, titleOf, toast } from "./state.js";

const MOST_DATA = 4096;

const close = (text = "Close") => el("form", { method: "dialog", className: "foot" }, el("button", { className: "primary" }, text));
const address = (url) => el("p", { className: "address" }, link(url, url));

/** What a login button does: the site is told who one is, and the bot nothing. */
function login({ text, login_url }) {
  const asks = login_url.request_write_access ? " and whether the bot may write to you" : "";
  const bot = login_url.bot_username ? `@${login_url.bot_username}` : state.bot.first_name;
  return show(text,
    el("p", {}, `A real client asks whether this site may know who you are${asks}. Then it opens the address with your id, your name and a hash made with the token of ${bot}; its domain has to be set with @BotFather. The bot hears nothing.`),
    address(login_url.url), close());
}

/** What opens a mini app from a message or from the menu: such an app sends nothing into the chat by itself. */
export function app(text, url) {
  return show(text,
    el("p", {}, "A real client opens this mini app over the chat, and tells it who you are. It has its own way to the bot's server, and can send a message on your behalf with answerWebAppQuery. None of this is played here."),
    address(url), close());
}

/** A mini app that a reply keyboard opens can send one text to the bot: here the person writes it. */
export async function appWithData({ text, web_app }) {
  const about = [el("p", {}, "A real client opens this mini app. With Telegram.WebApp.sendData it sends the bot one text, which arrives as web_app_data. Here you write it yourself."), address(web_app.url)];
  const given = await ask(text, [{ name: "data", label: "What the app sends", required: true, maxLength: MOST_DATA, placeholder: '{"cups":2}', hint: `1 to ${MOST_DATA} bytes, of any form` }], "Send", about);
  if (given) await actHere("send", { kind: "web_app_data", fields: { data: given.data, button_text: text } });
}

/** Chats that a button lets one choose from to write an inline query in. */
function choices(chosen) {
  const wanted = { private: chosen.allow_bot_chats, group: chosen.allow_group_chats, supergroup: chosen.allow_group_chats, channel: chosen.allow_channel_chats };
  const mine = (chat) => chat.members.includes(state.me) && !chat.migrated_to && (chat.type !== "channel" || isAdminOf(chat));
  const all = state.chats.filter(mine);
  const some = all.filter((chat) => wanted[chat.type]);
  return some.length ? some : all;
}

const isAdminOf = (chat) => chat.admins.includes(state.me);

async function elsewhere(text, query, chosen, doings) {
  const chats = choices(chosen);
  const options = chats.map((chat) => ({ value: String(chat.id), text: titleOf(chat) }));
  const given = await ask(text, [{ name: "chat", label: "In which chat?", options, value: String(state.chat.id), hint: `@${state.bot.username} ${query} will be typed there` }], "Go on");
  const chat = given && chats.find((one) => String(one.id) === given.chat);
  if (!chat) return;
  doings.open(chat);
  doings.type(`@${state.bot.username} ${query}`);
}

async function copy({ text, copy_text }) {
  try {
    await navigator.clipboard.writeText(copy_text.text);
    toast(`Copied: ${copy_text.text}`);
  } catch {
    // Not every browser lets a page do so.
    await show(text, el("p", {}, "A real client copies this text:"), el("pre", {}, copy_text.text), close());
  }
}

const ANY = { allow_bot_chats: true, allow_group_chats: true, allow_channel_chats: true };

/** An inline button of a kind that tells the bot nothing; `undefined` for any other. */
export function leadsOut(item, doings) {
  const key = (sign, title, work) => button(`${item.text} ${sign}`, () => attempt(async () => work()), { title });
  if (item.login_url) return key("⇥", "logs in at a site", () => login(item));
  if (item.web_app) return key("▣", "opens a mini app", () => app(item.text, item.web_app.url));
  if (item.copy_text) return key("❐", "copies a text", () => copy(item));
  const here = item.switch_inline_query_current_chat;
  if (here !== undefined) return key("@", "types an inline query here", () => doings.type(`@${state.bot.username} ${here}`));
  const query = item.switch_inline_query ?? item.switch_inline_query_chosen_chat?.query;
  if (query !== undefined || item.switch_inline_query_chosen_chat) {
    return key("@", "types an inline query in another chat", () => elsewhere(item.text, query ?? "", item.switch_inline_query_chosen_chat ?? ANY, doings));
  }
  return undefined;
}
