// Answers /hello, counts with /count and throws dice with /roll: a plugin in JavaScript.
//
// Built by `cargo xtask plugins` where npm is installed, or by hand, in this folder:
//
//   npm ci && npm run build
//
// Each interface that `hello.wit` imports is a module here. Names have camel case, a variant is `{ tag, val }`, what may be
// missing is `null`, and a function that can fail throws.

import * as botApi from "botyard:telegram/bot-api@0.1.0";
import * as conversation from "botyard:fsm/conversation@0.1.0";
import * as log from "botyard:log/log@0.1.0";
import * as random from "botyard:random/random@0.1.0";

const commands = { hello: "Say hello, from JavaScript", count: "Count, in this chat", roll: "Throw two dice" };

// What is exported is the interface `botyard:plugin/handler`.
export const handler = {
  // Asked once, when the plugin is loaded: what is this, and which events does it want?
  describe() {
    return {
      name: "hello-js",
      version: "0.1.0",
      description: "Answers /hello; written in JavaScript",
      filters: [filter({ commands: Object.keys(commands) })],
      commands: Object.entries(commands).map(([name, descriptionKey]) => ({ name, descriptionKey, menus: [] })),
      key: "chat",
      stateVersion: 1,
      catalogs: [],
      methods: ["sendMessage"],
      http: [],
      schedules: [],
      expired: false,
      recovers: false,
    };
  },

  // Called for each event, in a fresh instance: variables of the module are as they were when it was built.
  handle(run) {
    const update = run.event.tag === "update" ? run.event.val : null;
    const command = update?.command;
    if (command == null || update.chatId == null) {
      return { tag: "pass" };
    }
    const answers = { hello: () => hello(command.args), count, roll };
    reply(update.chatId, answers[command.name]());
    return { tag: "done" };
  },

  // Turns a state that an older `stateVersion` wrote into one of this version; there is none yet.
  migrate(old) {
    throw `no state of version ${old.version} is known`;
  },
};

function hello(name) {
  log.emit("info", "somebody says hello", [["named", String(name !== "")]]);
  return `Hello, ${name || "world"}!`;
}

// What should last goes into the conversation's state, which is saved when the run ends well.
function count() {
  const before = conversation.get();
  const counted = (before ? fromBytes(before.bytes).counted : 0) + 1;
  conversation.set({ name: "counting", version: 1, bytes: toBytes({ counted }) }, null);
  return counted === 1 ? "Once." : `${counted} times.`;
}

// Not `Math.random()`, whose numbers were settled when the module was built: it gives the same ones in every run.
function roll() {
  const [first, second] = random.bytes(2);
  return `${first % 6 + 1} and ${second % 6 + 1}.`;
}

function reply(chat_id, text) {
  const usual = { priority: "interactive", delivery: "at-least-once", longText: "split", badMarkup: "refuse" };
  try {
    botApi.enqueue("sendMessage", JSON.stringify({ chat_id, text }), usual);
  } catch (refused) {
    // What `handle` throws is the failure that the operator sees.
    throw { message: `sendMessage was not taken: ${JSON.stringify(refused)}`, retry: false };
  }
}

// There is neither `TextEncoder` nor `TextDecoder` here.
function toBytes(value) {
  return Uint8Array.from(unescape(encodeURIComponent(JSON.stringify(value))), (byte) => byte.charCodeAt(0));
}

function fromBytes(bytes) {
  return JSON.parse(decodeURIComponent(escape(String.fromCharCode(...bytes))));
}

// A filter has all of its fields; those that are not given stand for "any".
function filter(given) {
  return {
    kinds: [],
    chatTypes: [],
    commands: [],
    callbackPrefix: null,
    textRegex: null,
    plainText: false,
    textKeys: [],
    states: [],
    condition: null,
    observe: false,
    ...given,
  };
}
