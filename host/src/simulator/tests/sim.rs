//! `/sim/…` and the page.

use super::*;

async fn request(bot: &Bot, simulator: &Simulator, path: &str, body: Option<Value>) -> (u16, Value) {
    let url = format!("{}{path}", simulator.api_base());
    let request = match body {
        Some(body) => bot.http.post(url).header("content-type", "application/json").body(body.to_string()),
        None => bot.http.get(url),
    };
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    (status, serde_json::from_str(&response.text().await.unwrap()).unwrap_or(Value::Null))
}

#[tokio::test]
async fn another_process_can_play_the_people() {
    let (simulator, bot) = start().await;
    let get = |path: String| request(&bot, &simulator, Box::leak(path.into_boxed_str()), None);
    let post = |path: &'static str, body: Value| request(&bot, &simulator, path, Some(body));
    let (status, said) = post("/sim/say", json!({"chat": ALICE, "user": ALICE, "text": "hi"})).await;
    assert_eq!((status, &said["message_id"]), (200, &json!(1)));
    assert_eq!(bot.poll(json!({})).await[0]["update_id"], said["update_id"]);
    let keyboard = json!({"keyboard": [["Yes", {"text": "No"}]]});
    bot.ok("sendMessage", json!({"chat_id": ALICE, "text": "sure?", "reply_markup": keyboard})).await;
    let messages = get(format!("/sim/messages?chat={ALICE}&after=1")).await.1;
    assert_eq!(messages["messages"][0]["keyboard"], json!({"keyboard": [[{"text": "Yes"}, {"text": "No"}]]}));
    let (status, error) = post("/sim/say", json!({"chat": 5, "user": 5, "text": "hi"})).await;
    assert_eq!((status, &error["error"]), (400, &json!("there is no chat 5 in the simulator")));
    let calls = get("/sim/calls?after=1".to_owned()).await.1;
    assert_eq!((&calls["calls"][0]["method"], calls["calls"].as_array().unwrap().len()), (&json!("sendMessage"), 1));
    assert!(!calls.to_string().contains("TEST"), "no token");
    post("/sim/faults", json!({"method": "getMe", "do": {"kind": "flood", "retry_after": 1}, "times": 1})).await;
    assert_eq!(bot.refused("getMe", json!({})).await.0, 429);
    assert_eq!(get("/sim/faults".to_owned()).await.1[0]["hit"], 1);
    assert_eq!(post("/sim/faults", json!({"do": {"kind": "explode"}})).await.0, 400);
    let pushed = post("/sim/push", json!({"count": 5, "chats": 2})).await.1;
    assert_eq!(pushed["end"].as_i64().unwrap() - pushed["first"].as_i64().unwrap(), 5);
    assert_eq!(get("/sim/counters".to_owned()).await.1["delivered"], 1);
}

#[tokio::test]
async fn a_waiting_call_ends_with_its_client() {
    let (simulator, bot) = start().await;
    simulator.add_fault(Fault::on("getMe", Action::Silence { applied: false }));
    bot.ok("getWebhookInfo", json!({})).await;
    // The connection, which is used again, holds handles on the hub.
    let handles = || Arc::strong_count(&simulator.running.hub);
    let connected = handles();
    let waiting = tokio::time::timeout(Duration::from_millis(50), bot.try_call("getMe", json!({}))).await;
    assert!(waiting.is_err() && handles() >= connected);
    drop(bot);
    let closed = async {
        while handles() >= connected {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(SOON, closed).await.unwrap();
}

#[tokio::test]
async fn pages_of_other_sites_are_refused() {
    let (simulator, bot) = start().await;
    let url = format!("{}/sim/chats", simulator.api_base());
    let status = |name: &'static str, value: String| {
        let request = bot.http.get(&url).header(name, value);
        async move { request.send().await.unwrap().status().as_u16() }
    };
    assert_eq!(status("host", "evil.example".into()).await, 403);
    assert_eq!(status("origin", "http://evil.example".into()).await, 403);
    assert_eq!(status("origin", simulator.api_base()).await, 200);
    let send = bot.http.post(format!("{}/getUpdates", bot.base)).header("origin", "http://evil.example");
    assert_eq!(send.send().await.unwrap().status(), 403);
}

#[tokio::test]
async fn pages_hear_of_everything_at_once() {
    let (simulator, bot) = start().await;
    let mut events = bot.http.get(format!("{}/sim/events", simulator.api_base())).send().await.unwrap();
    bot.ok("sendMessage", json!({"chat_id": ALICE, "text": "one"})).await;
    bot.ok("sendChatAction", json!({"chat_id": ALICE, "action": "typing"})).await;
    bot.ok("deleteMessage", json!({"chat_id": ALICE, "message_id": 1})).await;
    let mut seen = String::new();
    while !seen.contains("\"delete\"") {
        let chunk = tokio::time::timeout(SOON, events.chunk()).await.unwrap().unwrap().unwrap();
        seen.push_str(std::str::from_utf8(&chunk).unwrap());
    }
    let kinds = seen.lines().filter_map(|line| line.strip_prefix("data: "));
    let kinds: Vec<_> = kinds.filter(|line| !line.contains("\"activity\"")).collect();
    assert!(kinds[0].starts_with("{\"event\":\"message\",\"chat\":1001,"), "{}", kinds[0]);
    assert_eq!(kinds.len(), 3);
}

#[tokio::test]
async fn the_page_loads_nothing_from_elsewhere() {
    let (simulator, bot) = start().await;
    for (path, ..) in page::FILES {
        let response = bot.http.get(format!("{}{path}", simulator.api_base())).send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert!(response.headers()["content-security-policy"].to_str().unwrap().starts_with("default-src 'none'"));
        let body = response.text().await.unwrap();
        assert!(!body.is_empty() && !body.contains("innerHTML"), "{path}");
    }
}
