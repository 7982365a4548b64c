//! Several bots in one configuration.

use super::*;

const TWO: &str = r#"
    [bot]
    token = { env = "BOT_TOKEN" }
    [intake]
    poll_timeout = "5s"
    allowed_updates = ["message"]
    [send]
    chat_per_second = 2
    [bots.shop]
    token = "777:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"
    api_base = "http://127.0.0.1:8081"
    [bots.shop.intake]
    poll_timeout = "7s"
    [bots.shop.send]
    bulk_per_second = 3
    [plugins.all]
    path = "all.wasm"
    [plugins.orders]
    path = "orders.wasm"
    bots = ["shop"]
"#;

#[test]
fn a_bots_own_keys_go_over_the_general_ones() {
    let config = load(TWO, [("BOTYARD__BOTS__SHOP__API_BASE", "http://127.0.0.1:9")]).unwrap();
    let names: Vec<&str> = config.bots.keys().map(BotName::as_str).collect();
    assert_eq!((config.name.as_str(), names), ("bot", vec!["bot", "shop"]));
    let of = |name| config.of(&BotName::new(name)).unwrap();
    let (bot, shop) = (of("bot"), of("shop"));
    let seconds = Duration::from_secs;
    assert_eq!((bot.intake.poll_timeout, shop.intake.poll_timeout), (seconds(5), seconds(7)));
    assert_eq!(shop.intake.allowed_updates, AllowedUpdates::Only(vec!["message".to_owned()]));
    assert_eq!((bot.send.bulk_per_second, shop.send.bulk_per_second), (25.0, 3.0));
    assert_eq!((bot.send.chat_per_second, shop.send.chat_per_second), (2.0, 2.0));
    assert_eq!((&*bot.bot.api_base, &*shop.bot.api_base), ("https://api.telegram.org", "http://127.0.0.1:9"));
    let plugins = |config: &Config| config.plugins.keys().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!((plugins(&bot), plugins(&shop)), (vec!["all".to_owned()], vec!["all".to_owned(), "orders".to_owned()]));
    assert!(config.of(&BotName::new("other")).is_none());
    assert!(!config.redacted().contains("AAHdq"), "{}", config.redacted());
    // The printed form has masks in the place of tokens, which makes them the same.
    let again = config.redacted().replacen(redaction::MASK, "1:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw", 1);
    let again = good(&again.replacen(redaction::MASK, "2:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw", 1));
    assert_eq!(again.of(&BotName::new("shop")).unwrap().intake, shop.intake);
    assert_eq!(again.plugins[&PluginName::new("orders")].bots, Some(vec![BotName::new("shop")]));
}

#[test]
fn several_bots_need_no_section_of_the_one() {
    let config = good(&TWO.replace("[bot]\n    token = { env = \"BOT_TOKEN\" }", ""));
    assert_eq!((config.name.as_str(), config.bots.len()), ("shop", 1));
    assert_eq!(config.bot.api_base, "http://127.0.0.1:8081");
    assert!(!config.redacted().contains("[bot]"), "{}", config.redacted());
    let hook = "[intake]\nmode = \"webhook\"\n[intake.webhook]\nmax_connections = 7\n[bots.a]\ntoken = \"1:x\"\n\
                [bots.a.intake.webhook]\nurl = \"https://a.example/\"\nsecret = \"s\"\n";
    let webhook = good(hook).intake.webhook.unwrap();
    assert_eq!((&*webhook.url, webhook.max_connections), ("https://a.example/", 7));
}

#[test]
fn bots_that_are_in_each_others_way_are_told() {
    let token = "token = \"777:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw\"\n";
    let same = |config: &str, wanted: &[&str]| {
        let found = problems(config, NO_VARIABLES);
        for wanted in wanted {
            assert!(found.iter().any(|line| line.contains(wanted)), "{wanted}: {found:#?}");
        }
        assert_eq!(found.len(), wanted.len(), "{found:#?}");
    };
    same(&format!("[bots.a]\n{token}[bots.b]\n{token}"), &["the bots `a` and `b` have the same token"]);
    same(&format!("[bots.bot]\n{token}"), &["`bot` is the name of the bot in [bot]"]);
    same(&format!("[bots.\"A b\"]\n{token}"), &["bot name \"A b\""]);
    same("[bots.a]\n", &["`token` is missing in [bots.a]"]);
    same(&format!("[bots.a]\n{token}tokn = 1\n"), &["unknown key `tokn` in [bots.a]; did you mean `token`?"]);
    same(&format!("[bots.a]\n{token}[bots.a.send]\nchat = 1\n"), &["unknown key `chat` in [bots.a.send]"]);
    same(
        &format!("[bots.shop]\n{token}[plugins.x]\npath = \"x.wasm\"\nbots = [\"shap\"]\n"),
        &["there is no bot `shap`; did you mean `shop`?"],
    );
    let two = format!("[bots.a]\n{token}[bots.b]\n{}", token.replace("777", "778"));
    same(&format!("[send]\nchat_per_secnd = 1\n{two}"), &["unknown key `chat_per_secnd` in ["]);
    let hook = "[intake]\nmode = \"webhook\"\n[intake.webhook]\nurl = \"https://a.example/\"\n";
    same(&format!("{hook}{two}"), &["both take their webhook's calls at 127.0.0.1:8443", "have the same address"]);
}
