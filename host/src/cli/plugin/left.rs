//! What plugins have left that are not configured any more.

use super::print;
use crate::cli::exit::{Exit, WrongArgument};
use crate::cli::hand::Hand;
use crate::cli::table::table;
use crate::config::Config;
use crate::config::show_bytes;
use crate::domain::PluginName;
use crate::operate::Left;

/// Of plugins that the configuration does not name, switched off or not.
pub(super) fn of_gone(config: &Config, left: Vec<Left>) -> Vec<Left> {
    left.into_iter().filter(|left| !config.plugins.contains_key(&PluginName::new(&left.plugin))).collect()
}

/// A line below the list of plugins.
pub(super) fn hint(gone: &[Left]) -> String {
    let names: Vec<_> = gone.iter().map(|left| format!("`{}`", left.plugin)).collect();
    match names.as_slice() {
        [] => String::new(),
        names => format!(
            "\nnot configured any more, and there is something left of: {} (`botyard plugin left`)\n",
            names.join(", ")
        ),
    }
}

pub(super) async fn list(config: &Config, simulated: bool, json: bool) -> anyhow::Result<Exit> {
    let hand = Hand::on(config, simulated).await?;
    let gone = of_gone(config, hand.left().await?);
    hand.finish().await?;
    print(json, &gone, |gone| {
        if gone.is_empty() {
            return "nothing is left of plugins that are not configured\n".to_owned();
        }
        let row = |left: &Left| [left.plugin.clone(), left.timers.to_string(), show_bytes(left.bytes)];
        let rows: Vec<[String; 3]> = gone.iter().map(row).collect();
        format!("{}`botyard plugin forget NAME` drops it\n", table(["NAME", "TIMERS", "IN ALL"], &rows))
    })
}

pub(super) async fn forget(config: &Config, simulated: bool, json: bool, name: &str) -> anyhow::Result<Exit> {
    if config.plugins.contains_key(&PluginName::new(name)) {
        let still = format!("`{name}` is in the configuration; `botyard plugin remove {name}` takes it out");
        return Err(WrongArgument(still).into());
    }
    let hand = Hand::on(config, simulated).await?;
    let dropped = hand.forget(name).await;
    hand.finish().await?;
    print(json, &dropped?, |rows| format!("{rows} rows of `{name}` are dropped\n"))
}
