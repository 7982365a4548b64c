//! Answers every text with the same text.
//!
//! A text that begins with `slow` is answered late: the handler sleeps first. That holds up its own chat, where the
//! order matters, and nobody else. How long it sleeps is the operator's choice, in `bot.toml`:
//!
//! ```toml
//! [plugins.echo]
//! path = "target/plugins/echo.wasm"
//! config = { slow_ms = 1000 }
//! ```

use botyard_sdk::prelude::*;

#[plugin(methods = ["sendMessage"])]
mod echo {
    #[derive(Deserialize)]
    #[serde(default)]
    struct Config {
        slow_ms: u64,
    }

    impl Default for Config {
        fn default() -> Self {
            Self { slow_ms: 1000 }
        }
    }

    #[text]
    fn echo(ctx: &mut Ctx) -> Result<(), Error> {
        if ctx.text().starts_with("slow") {
            let config: Config = ctx.config()?;
            ctx.sleep(Duration::from_millis(config.slow_ms));
        }
        ctx.reply(ctx.text());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use botyard_sdk::test::Bot;

    use super::echo::Plugin;

    #[test]
    fn every_text_comes_back_unchanged() {
        let mut bot = Bot::<Plugin>::new();
        for text in ["hello", "  two  spaces ", "/unknown command", "👩‍👩‍👧 \"quoted\" \\ \n next line", "slow"]
        {
            assert_eq!(bot.text(text).texts(), [text]);
        }
    }
}
