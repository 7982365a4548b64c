//! Whole conversations on the page, at a desk and on a phone.

use botyard_tests::{Host, HostBuilder, guest, plugin};
use serde_json::json;

use super::page::Page;

const ALICE: &str = "1001/1001/0";
const GROUP: &str = "1001/-2001/0";

/// A host and a page, if there is a browser.
fn stage() -> Option<(Host, Page)> {
    let Some(program) = std::env::var("BOTYARD_BROWSER").ok().filter(|program| !program.is_empty()) else {
        println!("skipped: no browser is named in BOTYARD_BROWSER; `cargo xtask test browser` looks for one");
        return None;
    };
    let host = HostBuilder::new("http://127.0.0.1:1")
        .simulator()
        .plugin("form", &plugin("form"), "")
        .plugin("showroom", &guest("showroom"), "")
        .plugin("panics", &guest("panics"), "on_crash = \"skip\"")
        .plugin("echo", &plugin("echo"), "priority = -10")
        .start();
    let page = Page::open(&program, &host.page());
    Some((host, page))
}

#[test]
fn a_conversation_at_a_desk() {
    let Some((_host, mut page)) = stage() else { return };
    page.visit(1280, 800, false, ALICE);
    page.says("hello <b>there</b>");
    page.hears("hello <b>there</b>");
    let markup = page.js("document.querySelectorAll('#log b').length");
    assert_eq!(markup, json!(0), "what people write is text");

    // The state before and after, the call and its answer.
    page.says("/form");
    page.hears("What is your name?");
    page.says("Alice");
    page.hears("How old are you?");
    page.until("document.querySelector('#inside > details .what')?.innerText === 'Alice: Alice'");
    page.until("document.querySelector('#inside > details .to')?.innerText.includes('form')");
    page.js("document.querySelector('#inside > details > summary').focus()");
    page.key("Enter");
    let seen = "document.querySelector('#inside > details[open]')?.innerText.replace(/\\s+/g, ' ')";
    for part in ["before name", "after age", "sendMessage", "How old are you?", "took it", "update_id", "answer"] {
        page.until(&format!("{seen}.includes({})", json!(part)));
    }
    page.until(&format!("!{seen}.includes('no answer yet')"));
    page.shot("desk-light");

    // Buttons: a toast, then an alert that has to be closed.
    page.says("/alert");
    page.clicks("#log", "Toast");
    page.until("document.querySelector('.toast')?.innerText === 'Heard'");
    // What was pressed, not the sealed data behind it.
    page.until("[...document.querySelectorAll('#inside .what')].some((what) => what.innerText === 'Alice: [Toast]')");
    page.says("/alert");
    page.clicks("#log", "Alert");
    page.until(
        "document.getElementById('dialog').open && document.getElementById('dialog').innerText.includes('Heard')",
    );
    page.key("Escape");
    page.until("!document.getElementById('dialog').open");
    page.until("[...document.querySelectorAll('#log .meta')].at(-1).innerText.includes('edited')");

    page.says("/poll");
    page.clicks("#log", "Manti");
    page.hears("Voted: [1]");
    page.until("[...document.querySelectorAll('.result')].at(-1)?.innerText.includes('100')");

    pay(&mut page);

    // Why something failed is there without opening it.
    page.says("/panic");
    page.until("document.querySelector('#inside .to')?.innerText.startsWith('panics failed: the plugin panicked at')");

    // A timer of an hour, in no time.
    page.says("/later");
    page.hears("In an hour");
    let clock = page_clock(&mut page);
    page.clicks(".top", &clock);
    page.until("document.getElementById('clock-popup').innerText.includes('next timer')");
    page.shot("desk-clock");
    let to_timer = page.js("[...document.querySelectorAll('#clock-popup button')].at(-1).innerText");
    page.clicks("#clock-popup", to_timer.as_str().expect("a name"));
    page.hears("It is time");
    page.key("Escape");

    // Inline mode, by keyboard.
    page.js("document.getElementById('text').focus()");
    page.types("@botyard_bot tea");
    page.until("document.getElementById('panel').innerText.includes('Found tea')");
    page.key("Enter");
    page.until("[...document.querySelectorAll('#log .mine .via')].some((via) => via.innerText === 'via @botyard_bot')");
    page.visit(1280, 800, true, ALICE);
    page.hears("tea");
    page.shot("desk-dark");
    page.fits();
    page.is_content();
}

fn page_clock(page: &mut Page) -> String {
    page.js("document.getElementById('clock-face').innerText.trim()").as_str().expect("a time").to_owned()
}

/// An invoice whose price depends on how it is shipped.
fn pay(page: &mut Page) {
    page.says("/buy");
    page.clicks("#log", "Pay");
    page.until("document.getElementById('dialog').open");
    page.clicks("#dialog", "Pay €4.00");
    page.until("document.getElementById('pay-shipping').innerText.includes('Courier')");
    page.clicks("#pay-shipping", "Courier, €1.50");
    page.shot("pay");
    page.clicks("#dialog", "Pay €5.50");
    page.hears("Thank you for 550");
    page.until("!document.getElementById('dialog').open");
}

#[test]
fn a_conversation_on_a_phone() {
    let Some((_host, mut page)) = stage() else { return };
    page.visit(360, 740, false, "");
    page.until("document.body.dataset.view === 'list'");
    page.shot("phone-list");
    page.fits();
    page.clicks("#chats", "Friday football");
    page.until("document.body.dataset.view === 'chat'");
    page.says("anybody?");
    page.hears("anybody?");

    // Somebody else speaks, in the same chat.
    page.js("(() => { const s = document.getElementById('speaker'); s.value = '1002'; s.dispatchEvent(new Event('change')); })()");
    page.says("me");
    page.until("[...document.querySelectorAll('#log .mine')].at(-1)?.innerText.includes('me')");
    page.fits();
    page.shot("phone-group");

    page.visit(360, 740, true, ALICE);
    page.says("/ask");
    page.clicks("#keyboard", "My number 📞");
    page.hears("Your number is +999");
    page.until("document.getElementById('keyboard').hidden");
    page.says("/reply");
    page.until("document.getElementById('context').innerText.includes('Say it')");
    page.says("it");
    page.hears("You answer Say it");
    page.says("/poll");
    page.clicks("#log", "Plov");
    page.hears("Voted: [0]");
    pay(&mut page);
    page.shot("phone-chat-dark");
    page.fits();

    // The other tab.
    page.clicks("main", "Inside");
    page.until("document.body.dataset.view === 'inside'");
    page.until("document.querySelector('#inside > details')?.innerText.includes('showroom')");
    page.js("document.querySelector('#inside > details > summary').click()");
    page.until("document.querySelector('#inside .run')");
    page.fits();
    page.shot("phone-inside-dark");
    page.clicks("aside", "Chat");
    page.until("document.body.dataset.view === 'chat'");
    page.is_content();
}

/// Buttons that lead out of the chat say where to; what would come of it reaches the bot.
#[test]
fn doors_are_shown_and_polls_are_answered() {
    let Some((_host, mut page)) = stage() else { return };
    for (width, height, is_dark, name) in [(1280, 800, false, "desk"), (360, 740, true, "phone")] {
        page.visit(width, height, is_dark, ALICE);
        page.says("/doors");
        page.hears("Doors");
        page.shot(&format!("doors-{name}"));
        page.fits();
        for (label, said, shot) in [
            ("Log in ⇥", "whether this site may know who you are and whether the bot may write to you", "login"),
            ("Shop ▣", "opens this mini app over the chat", "app"),
        ] {
            page.clicks("#log", label);
            page.until(&format!("document.getElementById('dialog').innerText.includes({})", json!(said)));
            page.until("document.querySelector('#dialog .address a').href.startsWith('https://')");
            page.shot(&format!("{shot}-{name}"));
            page.fits();
            page.clicks("#dialog", "Close");
            page.until("!document.getElementById('dialog').open");
        }
        // A headless browser has a clipboard or not: either way the text is there to see.
        page.clicks("#log", "Code ❐");
        page.until(
            "[...document.querySelectorAll('.toast, #dialog[open]')].some((e) => e.innerText.includes('TEA-42'))",
        );
        page.key("Escape");
        page.until("!document.getElementById('dialog').open");

        page.clicks("#keyboard", "Order ▣");
        page.until("document.getElementById('dialog').innerText.includes('web_app_data')");
        page.js("document.querySelector('#dialog [name=data]').focus()");
        page.types(name);
        page.shot(&format!("data-{name}"));
        page.fits();
        page.clicks("#dialog", "Send");
        page.hears(&format!("The app says {name}"));
        page.until(&format!(
            "[...document.querySelectorAll('#log .note')].at(-1).innerText === 'Alice sent data from “Order”: {name}'"
        ));

        page.clicks("#log", "Look here @");
        page.until("document.getElementById('text').value === '@botyard_bot manti'");
        page.clicks("#log", "Tell others @");
        page.until("document.getElementById('dialog').open");
        page.js("(() => { document.querySelector('#dialog select').value = '-2001'; })()");
        page.clicks("#dialog", "Go on");
        page.until("document.getElementById('title').innerText === 'Friday football'");
        page.until("document.getElementById('text').value === '@botyard_bot tea'");
        page.key("Escape");

        page.visit(width, height, !is_dark, ALICE);
        page.says("/quiz");
        page.clicks("#log", "Ice");
        page.hears("Voted: [0]");
        let quiz = "[...document.querySelectorAll('.poll')].at(-1)";
        page.until(&format!("{quiz}.innerText.includes('✗ Ice') && {quiz}.innerText.includes('✓ Water')"));
        page.until(&format!("{quiz}.innerText.includes('At a hundred degrees.')"));
        page.shot(&format!("quiz-{name}"));
        page.fits();
    }
    page.is_content();
}

#[test]
fn people_and_chats_are_made_and_messages_handled_by_keyboard() {
    let Some((_host, mut page)) = stage() else { return };
    page.visit(1000, 700, false, GROUP);
    page.says("first");
    page.hears("first");
    // Down into the messages, and the menu of the newest one.
    page.js("document.getElementById('log').focus()");
    page.key("ArrowUp");
    page.until("document.activeElement.matches('#log article')");
    page.key("Enter");
    page.until("document.getElementById('actions').matches(':popover-open')");
    page.key("Enter");
    page.until("document.querySelector('.reactions button')?.innerText.includes('👍')");
    page.key("Escape");

    page.clicks("nav", "New person");
    page.types("Gulnora");
    page.key("Enter");
    page.until("document.getElementById('person').selectedOptions[0].innerText.includes('Gulnora')");
    page.until("document.getElementById('others').innerText.includes('Neighbours')");

    page.visit(1000, 700, false, ALICE);
    page.clicks("nav", "New group or channel");
    page.until("document.getElementById('dialog').open");
    page.js("document.querySelector('#dialog select').value = 'forum'");
    page.js("document.querySelector('#dialog [name=title]').focus()");
    page.types("Club");
    page.js("document.querySelector('#dialog [name=topics]').focus()");
    page.types("Chess, Go");
    page.key("Enter");
    page.until("document.getElementById('title').innerText === 'Club'");
    page.until("document.getElementById('chats').innerText.includes('Chess')");
    page.clicks("main", "About this chat");
    page.until("document.getElementById('dialog').innerText.includes('Alice owner')");
    page.shot("about");
    page.is_content();
}
