// Paying an invoice: what it comes to, what the buyer is asked for, how it is shipped, and the bot's word on it.

import { $, button, el } from "./dom.js";
import { closeDialog, show } from "./dialogs.js";
import { money } from "./format.js";
import { actHere, attempt, nameOf, state, toast } from "./state.js";

/** How long a client waits for the bot. Telegram gives it ten seconds. */
const PATIENCE = 12_000;

function answerOf(query) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      state.waiting.delete(query);
      reject(new Error("The bot has not answered in time; nothing was paid."));
    }, PATIENCE);
    state.waiting.set(query, (answer) => { clearTimeout(timer); resolve(answer); });
  });
}

function field(name, label, value) {
  return el("p", {}, el("label", { htmlFor: `pay-${name}` }, label), el("input", { id: `pay-${name}`, name, value, required: true, autocomplete: "off" }));
}

export async function pay(message) {
  const { invoice, order = {} } = message;
  const amount = (sum) => money(sum, invoice.currency);
  const name = nameOf(state.me);
  const ships = order.need_shipping_address || order.is_flexible;
  const form = el("form", {},
    el("p", {}, invoice.description),
    el("table", { className: "prices" }, el("tbody", {}, (order.prices ?? []).map((price) => el("tr", {}, el("td", {}, price.label), el("td", {}, amount(price.amount))))),
      el("tfoot", {}, el("tr", {}, el("th", {}, "Total"), el("th", { id: "pay-total" }, amount(invoice.total_amount))))),
    order.need_name && field("name", "Name", name),
    order.need_phone_number && field("phone_number", "Phone number", "+99900001001"),
    order.need_email && field("email", "E-mail", `${name.toLowerCase()}@example.com`),
    ships && [field("street_line1", "Street", "221B Baker Street"), field("city", "City", "London"), field("post_code", "Post code", "NW1 6XE"), field("country_code", "Country (two letters)", "GB")],
    el("div", { id: "pay-shipping" }),
    el("p", { id: "pay-status", role: "status" }),
    el("div", { className: "foot" }, button("Cancel", closeDialog), el("button", { className: "primary", id: "pay-now" }, `Pay ${amount(invoice.total_amount)}`)));
  let shipping;
  form.onsubmit = (event) => {
    event.preventDefault();
    $("pay-now").disabled = true;
    const say = (text) => { if ($("pay-status")) $("pay-status").textContent = text; };
    attempt(async () => {
      try {
        if (order.is_flexible && shipping) shipping[1] = new FormData(form).get("shipping");
        const { query_id } = await actHere("pay", { message_id: message.message_id, order: { info: info(form), shipping: shipping ?? null } });
        say("The bot is asked …");
        const answer = await answerOf(query_id);
        if (answer.ok === false || answer.show_alert) return say(answer.text || "The bot declined.");
        if (answer.event === "shipping") {
          shipping = [query_id, answer.options[0].id];
          offer(answer.options, invoice, form);
          return say("Choose how it is shipped.");
        }
        closeDialog();
        toast(`Paid: ${invoice.title}.`);
      } catch (error) {
        say(error.message);
      } finally {
        if ($("pay-now")) $("pay-now").disabled = false;
      }
    });
  };
  await show(invoice.title, form);
}

function offer(options, invoice, form) {
  const price = (option) => option.prices.reduce((sum, { amount }) => sum + amount, 0);
  const total = () => {
    const chosen = options.find((option) => option.id === new FormData(form).get("shipping")) ?? options[0];
    const sum = money(invoice.total_amount + price(chosen), invoice.currency);
    $("pay-total").textContent = sum;
    $("pay-now").textContent = `Pay ${sum}`;
  };
  const radio = (option, at) => el("label", {}, el("input", { type: "radio", name: "shipping", value: option.id, checked: at === 0, onchange: total }), `${option.title}, ${money(price(option), invoice.currency)}`);
  $("pay-shipping").replaceChildren(el("fieldset", {}, el("legend", {}, "Shipping"), options.map(radio)));
  total();
}

function info(form) {
  const data = Object.fromEntries(new FormData(form));
  const info = {};
  for (const name of ["name", "phone_number", "email"]) if (data[name] !== undefined) info[name] = data[name];
  if (data.city !== undefined) {
    const { street_line1, city, post_code, country_code } = data;
    info.shipping_address = { country_code: country_code.toUpperCase(), state: "", city, street_line1, street_line2: "", post_code };
  }
  return Object.keys(info).length ? info : null;
}
