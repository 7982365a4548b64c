//! Faults on a real socket.

use super::*;

async fn send(bot: &Bot) -> reqwest::Result<(u16, String)> {
    bot.try_call("sendMessage", json!({"chat_id": ALICE, "text": "hello"})).await
}

#[tokio::test]
async fn answers_can_be_anything() {
    let (simulator, bot) = start().await;
    simulator.add_fault(Fault::on("sendMessage", Action::Flood { retry_after: 7 }).nth(1));
    simulator.add_fault(Fault::on("sendMessage", Action::bad_gateway()).times(1));
    simulator.add_fault(Fault::on("sendMessage", Action::internal_error()).times(1));
    let response = bot.http.post(format!("{}/sendMessage?chat_id={ALICE}&text=x", bot.base)).send().await.unwrap();
    assert_eq!((response.status().as_u16(), &response.headers()["retry-after"]), (429, &"7".parse().unwrap()));
    let body: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
    assert_eq!(
        body,
        json!({
            "ok": false, "error_code": 429, "description": "Too Many Requests: retry after 7", "parameters": {"retry_after": 7}
        })
    );
    let (status, html) = send(&bot).await.unwrap();
    assert!(status == 502 && html.starts_with("<html>"), "{html}");
    assert_eq!(send(&bot).await.unwrap().0, 500);
    assert_eq!(simulator.delivered(ALICE), 0, "none of them took effect");
    assert_eq!(send(&bot).await.unwrap().0, 200);
    assert_eq!(simulator.calls_of("sendMessage").len(), 4);
}

#[tokio::test]
async fn a_cut_body_took_effect() {
    let (simulator, bot) = start().await;
    simulator.add_fault(Fault::on("sendMessage", Action::Cut { after: 20 }).times(1));
    let url = format!("{}/sendMessage?chat_id={ALICE}&text=hello", bot.base);
    let mut response = bot.http.get(url).send().await.unwrap();
    assert!(response.content_length().unwrap() > 20);
    let part = response.chunk().await.unwrap().unwrap();
    assert_eq!(part, b"{\"ok\":true,\"result\":".as_slice());
    assert!(response.chunk().await.is_err(), "the rest never comes");
    assert_eq!(simulator.delivered(ALICE), 1);
    assert_eq!(send(&bot).await.unwrap().0, 200, "the server goes on");
}

#[tokio::test]
async fn a_reset_comes_before_or_after_the_effect() {
    let (simulator, bot) = start().await;
    for (applied, delivered) in [(false, 0), (true, 1)] {
        simulator.add_fault(Fault::on("sendMessage", Action::Reset { applied }).times(1));
        let error = send(&bot).await.unwrap_err();
        let chain = format!("{error:?}").to_ascii_lowercase();
        assert!(chain.contains("reset"), "{chain}");
        assert_eq!(simulator.delivered(ALICE), delivered);
        simulator.clear_faults();
    }
}

#[tokio::test]
async fn stalls_hold_the_answer_back() {
    let (simulator, bot) = start().await;
    let time = Duration::from_millis(150);
    simulator.add_fault(Fault::on("sendMessage", Action::Stall { time, applied: true }).nth(1));
    simulator.add_fault(Fault::on("sendMessage", Action::Stall { time, applied: false }).times(1));
    for (call, delivered_meanwhile) in [(1, 1), (2, 1)] {
        let start = tokio::time::Instant::now();
        let watch = async {
            while simulator.calls_of("sendMessage").len() < call {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
            simulator.delivered(ALICE)
        };
        let (sent, meanwhile) = tokio::join!(send(&bot), watch);
        assert_eq!(sent.unwrap().0, 200);
        assert!(start.elapsed() >= time);
        assert_eq!(meanwhile, delivered_meanwhile, "call {call}");
    }
}

#[tokio::test]
async fn silence_lasts_as_long_as_the_client() {
    let (simulator, bot) = start().await;
    simulator.add_fault(Fault::on("sendMessage", Action::Silence { applied: true }).times(1));
    let waited = tokio::time::timeout(Duration::from_millis(100), send(&bot)).await;
    assert!(waited.is_err());
    assert_eq!(simulator.delivered(ALICE), 1);
}
