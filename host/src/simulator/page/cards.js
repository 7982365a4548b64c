// What a message shows besides its text: pictures, files, places, polls, invoices, and the notes that stand in a chat.

import { button, el, icon } from "./dom.js";
import { link, money } from "./format.js";
import { act, attempt, nameOf, state } from "./state.js";

const isAddress = (id) => /^https?:/.test(id);
const source = (id) => `/sim/file/${encodeURIComponent(id)}`;
const KINDS = { document: "File", video: "Video", animation: "Animation", audio: "Audio", voice: "Voice message", video_note: "Video message" };

function size(bytes) {
  if (!bytes) return "";
  const units = ["B", "KB", "MB", "GB"];
  const power = Math.min(3, Math.floor(Math.log(bytes) / Math.log(1024)));
  return `${(bytes / 1024 ** power).toFixed(power && bytes / 1024 ** power < 10 ? 1 : 0)} ${units[power]}`;
}

/** A file by its name. One that lies elsewhere is never loaded: its address is shown. */
function fileCard(file, name) {
  const title = file.file_name && file.file_name !== "file" ? file.file_name : name;
  const about = isAddress(file.file_id)
    ? link(file.file_id, "at another site; not loaded")
    : el("a", { href: source(file.file_id), download: title }, `download ${size(file.file_size)}`);
  return el("div", { className: "card file" }, icon("file"), el("div", {}, el("strong", {}, title), el("div", { className: "quiet" }, about)));
}

/** The same if the browser can't show it, or it is gone. */
function orCard(element, file, name) {
  element.onerror = () => element.replaceWith(fileCard(file, `${name} (can't be shown here, or not kept over a restart)`));
  return element;
}

function media(kind, file, caption) {
  const name = KINDS[kind] ?? "Photo";
  if (isAddress(file.file_id)) return fileCard(file, name);
  const src = source(file.file_id);
  if (kind === "photo" || file.mime_type === "image/gif") return orCard(el("img", { src, alt: caption ?? name, loading: "lazy" }), file, name);
  const isVideo = ["video", "animation", "video_note"].includes(kind);
  if (isVideo) return orCard(el("video", { src, controls: true, preload: "metadata", className: kind, "aria-label": name }), file, name);
  if (kind === "voice" || kind === "audio") {
    const player = orCard(el("audio", { src, controls: true, preload: "metadata", "aria-label": name }), file, name);
    return el("div", { className: "card sound" }, el("div", { className: "quiet" }, kind === "voice" ? name : file.file_name ?? name), player);
  }
  return fileCard(file, name);
}

/** The picture or file of a message, if that is what it is. */
export function mediaOf(message) {
  if (message.photo) return media("photo", message.photo.at(-1), message.caption);
  for (const kind of Object.keys(KINDS)) {
    // An animation is a document too.
    if (message[kind] && !(kind === "document" && message.animation)) return media(kind, message[kind], message.caption);
  }
  return undefined;
}

function sticker(message) {
  const { emoji, file_id, mime_type } = message.sticker;
  if (emoji && !isAddress(file_id)) return el("span", { className: "sticker", role: "img", "aria-label": `Sticker ${emoji}` }, emoji);
  return isAddress(file_id) || mime_type ? fileCard(message.sticker, "Sticker") : orCard(el("img", { src: source(file_id), alt: "Sticker", className: "sticker-image" }), message.sticker, "Sticker");
}

function place(location, title, address) {
  const { latitude, longitude } = location;
  const where = `${Math.abs(latitude).toFixed(5)}° ${latitude < 0 ? "S" : "N"}, ${Math.abs(longitude).toFixed(5)}° ${longitude < 0 ? "W" : "E"}`;
  const lines = [title && el("strong", {}, title), address && el("div", {}, address), el("div", { className: title ? "quiet" : "" }, where)];
  return el("div", { className: "card file" }, icon("place"), el("div", {}, lines));
}

function contact({ first_name, last_name, phone_number }) {
  return el("div", { className: "card file" }, icon("person"), el("div", {}, el("strong", {}, [first_name, last_name].filter(Boolean).join(" ")), el("div", { className: "quiet" }, phone_number)));
}

function poll(message) {
  const { poll } = message;
  const mine = message.votes?.[state.me];
  const open = !poll.is_closed && !mine;
  const vote = (options) => attempt(() => act("vote", { chat: message.chat.id, user: state.me, message_id: message.message_id, options }));
  const kind = [poll.is_closed ? "Final results" : poll.is_anonymous ? "Anonymous" : "Public", poll.type === "quiz" ? "quiz" : "poll"].join(" ");
  const right = poll.correct_option_ids ?? [poll.correct_option_id].filter((id) => id !== undefined);
  const card = el("div", { className: "card poll" }, el("strong", {}, poll.question), el("div", { className: "quiet" }, poll.is_closed ? `${kind}` : kind));
  if (open && poll.allows_multiple_answers) {
    const boxes = poll.options.map((option, at) => el("label", { className: "choice" }, el("input", { type: "checkbox", value: at }), option.text));
    const chosen = () => boxes.flatMap((box) => (box.firstChild.checked ? [Number(box.firstChild.value)] : []));
    card.append(...boxes, button("Vote", () => chosen().length && vote(chosen()), { className: "primary" }));
  } else if (open) {
    card.append(...poll.options.map((option, at) => button(option.text, () => vote([at]), { className: "choice" })));
  } else {
    card.append(...poll.options.map((option, at) => {
      const share = poll.total_voter_count ? option.voter_count / poll.total_voter_count : 0;
      const percent = `${Math.round(share * 100)} %`;
      const sign = poll.type === "quiz" ? (right.includes(at) ? "✓ " : mine?.includes(at) ? "✗ " : "") : mine?.includes(at) ? "✓ " : "";
      const bar = el("div", { className: "bar", "aria-hidden": "true" });
      bar.style.setProperty("--share", share);
      return el("div", { className: "result" }, el("span", {}, sign + option.text), el("span", { className: "quiet" }, percent), bar);
    }));
    if (poll.type === "quiz" && poll.explanation && mine) card.append(el("p", { className: "quiet" }, poll.explanation));
  }
  const votes = poll.total_voter_count === 1 ? "1 vote" : `${poll.total_voter_count} votes`;
  const again = mine && !poll.is_closed && poll.allows_revoting !== false && button("take back", () => vote([]), { className: "small" });
  card.append(el("div", { className: "quiet foot" }, votes, again));
  return card;
}

function invoice({ invoice }) {
  return el("div", { className: "card invoice" }, el("div", { className: "quiet" }, "Invoice"), el("strong", {}, invoice.title), el("div", {}, invoice.description), el("div", { className: "price" }, money(invoice.total_amount, invoice.currency)));
}

/** What a message that is neither text nor file shows. */
export function cardOf(message) {
  if (message.sticker) return sticker(message);
  if (message.dice) return el("span", { className: "sticker", role: "img", "aria-label": `${message.dice.emoji} shows ${message.dice.value}` }, message.dice.emoji, el("span", { className: "value" }, message.dice.value));
  if (message.venue) return place(message.venue.location, message.venue.title, message.venue.address);
  if (message.location) return place(message.location);
  if (message.contact) return contact(message.contact);
  if (message.poll) return poll(message);
  if (message.invoice) return invoice(message);
  return undefined;
}

/** The words of a note that stands in the chat, if the message is one. */
export function noteOf(message) {
  const who = message.from ? nameOf(message.from.id) : message.sender_chat?.title ?? "Somebody";
  const names = (users) => users.map((user) => user.first_name).join(", ");
  if (message.new_chat_members) {
    const joined = message.new_chat_members;
    return joined.length === 1 && joined[0].id === message.from?.id ? `${who} joined` : `${who} added ${names(joined)}`;
  }
  if (message.left_chat_member) return message.left_chat_member.id === message.from?.id ? `${who} left` : `${who} removed ${message.left_chat_member.first_name}`;
  if (message.new_chat_title) return `${who} changed the title to “${message.new_chat_title}”`;
  if (message.group_chat_created) return `${who} made the group`;
  if (message.pinned_message) return `${who} pinned “${summary(message.pinned_message)}”`;
  if (message.forum_topic_created) return `${who} opened the topic “${message.forum_topic_created.name}”`;
  if (message.forum_topic_edited) return `${who} renamed the topic to “${message.forum_topic_edited.name}”`;
  if (message.forum_topic_closed) return `${who} closed the topic`;
  if (message.forum_topic_reopened) return `${who} reopened the topic`;
  if (message.migrate_to_chat_id || message.migrate_from_chat_id) return "The group became a supergroup";
  if (message.web_app_data) return `${who} sent data from “${message.web_app_data.button_text}”: ${message.web_app_data.data.slice(0, 120)}`;
  if (message.successful_payment) return `${who} paid ${money(message.successful_payment.total_amount, message.successful_payment.currency)}`;
  if (message.refunded_payment) return `${money(message.refunded_payment.total_amount, message.refunded_payment.currency)} went back to ${who}`;
  return undefined;
}

const NAMES = { photo: "Photo", sticker: "Sticker", venue: "Place", location: "Place", contact: "Contact", poll: "Poll", invoice: "Invoice", ...KINDS };

/** A line that stands for a message in lists and quotes. */
export function summary(message) {
  if (!message) return "";
  const text = message.text ?? message.caption;
  if (text) return text.replace(/\s+/g, " ").slice(0, 120);
  if (message.dice) return `${message.dice.emoji} ${message.dice.value}`;
  if (message.sticker?.emoji) return `${message.sticker.emoji} Sticker`;
  if (message.poll) return `Poll: ${message.poll.question}`;
  if (message.invoice) return `Invoice: ${message.invoice.title}`;
  const kind = Object.keys(NAMES).find((name) => message[name]);
  return noteOf(message) ?? NAMES[kind] ?? "Message";
}
