//! What is left when there is no host: the same HTTP calls in a loop, nothing durable, no order, no limits.
//!
//! It runs in a process of its own, as the host does, with the same HTTP client and the same number of calls in
//! flight.

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

/// Followed by the address of the server, it makes this program the bare loop.
pub(crate) const ARGUMENT: &str = "--bare";
/// What it says once it polls.
pub(crate) const READY: &str = "polling";

const IN_FLIGHT: usize = 100;

#[derive(Deserialize)]
struct Answer {
    result: Vec<Update>,
}

#[derive(Deserialize)]
struct Update {
    update_id: i64,
    message: Message,
}

#[derive(Deserialize)]
struct Message {
    chat: Chat,
    text: String,
}

#[derive(Deserialize)]
struct Chat {
    id: i64,
}

/// Until it is killed.
pub(crate) async fn run(api_base: &str) -> ExitCode {
    rustls::crypto::ring::default_provider().install_default().expect("nobody was here before");
    let client = reqwest::Client::builder()
        .no_proxy()
        .tcp_nodelay(true)
        .pool_max_idle_per_host(IN_FLIGHT + 1)
        .tls_certs_only(std::iter::empty())
        .build()
        .expect("a client");
    let base = format!("{api_base}/bot4242:bare/");
    let places = Arc::new(Semaphore::new(IN_FLIGHT));
    let (mut offset, mut timeout) = (0, 0);
    loop {
        let params = json!({ "offset": offset, "timeout": timeout, "limit": 100 });
        let answer = post(&client, &base, "getUpdates", &params).await;
        let answer: Answer = serde_json::from_slice(&answer).expect("updates");
        if timeout == 0 {
            timeout = 30;
            println!("{READY}");
            std::io::stdout().flush().expect("somebody listens");
        }
        for Update { update_id, message } in answer.result {
            offset = update_id + 1;
            let place = places.clone().acquire_owned().await.expect("never closed");
            let (client, base) = (client.clone(), base.clone());
            tokio::spawn(async move {
                let params = json!({ "chat_id": message.chat.id, "text": message.text });
                post(&client, &base, "sendMessage", &params).await;
                drop(place);
            });
        }
    }
}

async fn post(client: &reqwest::Client, base: &str, method: &str, params: &Value) -> Vec<u8> {
    let request = client.post(format!("{base}{method}")).header("content-type", "application/json");
    let answer = request.body(params.to_string()).send().await.expect("an answer");
    assert!(answer.status().is_success(), "{method}: {}", answer.status());
    answer.bytes().await.expect("all of it").to_vec()
}
