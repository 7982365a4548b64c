//! The simulator over a real socket.

mod api;
mod faulty;
mod persistence;
mod play;
mod polling;
mod sim;
mod split;

use std::sync::Once;
use std::time::Duration;

use serde_json::{Value, json};

use super::*;

const SOON: Duration = Duration::from_secs(5);

/// A bot's side: speaks HTTP and nothing else.
struct Bot {
    http: reqwest::Client,
    base: String,
}

async fn start() -> (Simulator, Bot) {
    let simulator = Simulator::start(SimulatorSettings::default()).await.unwrap();
    let bot = Bot::of(&simulator);
    (simulator, bot)
}

impl Bot {
    fn of(simulator: &Simulator) -> Self {
        static PROVIDER: Once = Once::new();
        PROVIDER.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
        Bot { http: reqwest::Client::new(), base: format!("{}/bot123456:TEST", simulator.api_base()) }
    }

    async fn try_call(&self, method: &str, params: Value) -> reqwest::Result<(u16, String)> {
        let request = self.http.post(format!("{}/{method}", self.base)).header("content-type", "application/json");
        let response = request.body(params.to_string()).send().await?;
        Ok((response.status().as_u16(), response.text().await?))
    }

    async fn call(&self, method: &str, params: Value) -> Value {
        let (status, body) = self.try_call(method, params).await.unwrap();
        let json: Value = serde_json::from_str(&body).unwrap();
        let code = if json["ok"] == true { 200 } else { json["error_code"].as_u64().unwrap() };
        assert_eq!(u64::from(status), code, "{body}");
        json
    }

    /// The result of a call that must succeed.
    async fn ok(&self, method: &str, params: Value) -> Value {
        let mut answer = self.call(method, params).await;
        assert_eq!(answer["ok"], true, "{method}: {answer}");
        answer["result"].take()
    }

    /// Code and description of a call that must be refused.
    async fn refused(&self, method: &str, params: Value) -> (u64, String) {
        let answer = self.call(method, params).await;
        assert_eq!(answer["ok"], false, "{method}: {answer}");
        (answer["error_code"].as_u64().unwrap(), answer["description"].as_str().unwrap().to_owned())
    }

    async fn poll(&self, params: Value) -> Vec<Value> {
        self.ok("getUpdates", params).await.as_array().unwrap().clone()
    }
}
