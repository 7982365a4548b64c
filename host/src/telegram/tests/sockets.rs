//! The transport over real sockets, against a server that misbehaves on purpose.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;

const SHORT: Duration = Duration::from_millis(300);
const LONG: Duration = Duration::from_secs(20);

/// What the server does with a request that it has read.
#[derive(Clone, Copy)]
enum Play {
    /// Answers, and keeps the connection.
    Say(&'static str),
    /// Answers, then closes.
    SayAndClose(&'static str),
    /// Answers, then sends nothing more and keeps the connection open.
    SayAndStall(&'static str),
    /// Closes with a reset, without an answer.
    Reset,
}

/// A server that plays the same to everybody. Gives its address, and the requests it has read.
async fn server(play: Play) -> (String, Arc<Mutex<Vec<(usize, String)>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = requests.clone();
    tokio::spawn(async move {
        for connection in 0.. {
            let Ok((stream, _)) = listener.accept().await else { return };
            tokio::spawn(serve(stream, play, connection, seen.clone()));
        }
    });
    (base, requests)
}

async fn serve(mut stream: TcpStream, play: Play, connection: usize, seen: Arc<Mutex<Vec<(usize, String)>>>) {
    while let Some(request) = request(&mut stream).await {
        seen.lock().unwrap().push((connection, request));
        let (text, then_close) = match play {
            Play::Say(text) => (text, false),
            Play::SayAndClose(text) => (text, true),
            Play::SayAndStall(text) => {
                stream.write_all(text.as_bytes()).await.unwrap();
                std::future::pending::<()>().await;
                return;
            }
            Play::Reset => {
                stream.set_zero_linger().unwrap();
                return;
            }
        };
        stream.write_all(text.as_bytes()).await.unwrap();
        if then_close {
            return;
        }
    }
}

/// One request, head and body, of a connection that may serve several.
async fn request(stream: &mut TcpStream) -> Option<String> {
    let mut text = String::new();
    let mut buffer = [0; 4096];
    loop {
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length =
                head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return Some(text);
            }
        }
        match stream.read(&mut buffer).await {
            Ok(read) if read > 0 => text.push_str(std::str::from_utf8(&buffer[..read]).unwrap()),
            _ => return None,
        }
    }
}

fn client(base: &str) -> Client {
    Client::new(base, Token::parse(TOKEN).unwrap()).unwrap()
}

/// The error of one call, after a look at everything that it could show.
async fn error_of(base: &str, deadline: Duration) -> Error {
    let error = client(base).call("sendMessage", Bytes::from_static(b"{}"), deadline).await.unwrap_err();
    assert_silent(&error);
    error
}

/// Neither the token nor the server's address, in any form, down to the last cause.
fn assert_silent(error: &(dyn std::error::Error + 'static)) {
    let mut next = Some(error);
    while let Some(error) = next {
        for shown in [error.to_string(), format!("{error:?}"), format!("{error:#?}")] {
            for secret in [TOKEN, TOKEN.split_once(':').unwrap().1, "/bot", "http://"] {
                assert!(!shown.contains(secret), "{shown}");
            }
        }
        next = error.source();
    }
}

#[tokio::test]
async fn a_call_is_a_json_post_and_connections_are_kept() {
    let (base, requests) =
        server(Play::Say("HTTP/1.1 200 OK\r\ncontent-length: 24\r\n\r\n{\"ok\":true,\"result\":1  }")).await;
    let client = client(&format!("{base}/"));
    for _ in 0..3 {
        let result = client.call("sendMessage", Bytes::from_static(br#"{"chat_id":1}"#), LONG).await;
        assert_eq!(result.unwrap(), "1");
    }
    client.rebuild();
    client.call("getMe", Bytes::new(), LONG).await.unwrap();
    let requests = requests.lock().unwrap().clone();
    assert_eq!(requests.iter().map(|(connection, _)| *connection).collect::<Vec<_>>(), [0, 0, 0, 1]);
    let first = &requests[0].1;
    assert!(first.starts_with(&format!("POST /bot{TOKEN}/sendMessage HTTP/1.1\r\n")), "{first}");
    assert!(first.contains("content-type: application/json\r\n"), "{first}");
    assert!(first.ends_with("\r\n\r\n{\"chat_id\":1}"), "{first}");
}

#[tokio::test]
async fn a_body_in_pieces_is_whole() {
    let (base, _) = server(Play::Say(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-type: text/plain\r\n\r\nb\r\n{\"ok\":true,\r\nb\r\n\"result\":12\r\n1\r\n}\r\n0\r\n\r\n",
    ))
    .await;
    assert_eq!(client(&base).call("getMe", Bytes::new(), LONG).await.unwrap(), "12");
}

#[tokio::test]
async fn a_success_that_breaks_off_has_lost_its_result() {
    let cut = "HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{\"ok\":true,\"result\":{\"mess";
    let (base, _) = server(Play::SayAndClose(cut)).await;
    assert!(matches!(error_of(&base, LONG).await, Error::ResultLost { .. }));
    let (base, _) = server(Play::SayAndStall(cut)).await;
    assert!(matches!(error_of(&base, SHORT).await, Error::ResultLost { .. }));
}

#[tokio::test]
async fn a_gateways_page_is_a_server_error() {
    let (base, _) = server(Play::Say(
        "HTTP/1.1 502 Bad Gateway\r\ncontent-type: text/html\r\ncontent-length: 19\r\n\r\n<html>nginx</html>\n",
    ))
    .await;
    assert!(matches!(error_of(&base, LONG).await, Error::ServerError { status: 502, .. }));
}

#[tokio::test]
async fn a_flood_is_read_from_the_header_too() {
    let (base, _) =
        server(Play::Say("HTTP/1.1 429 Too Many Requests\r\nretry-after: 12\r\ncontent-length: 0\r\n\r\n")).await;
    let error = error_of(&base, LONG).await;
    assert_eq!(error, Error::Flooded { method: "sendMessage".into(), retry_after: Duration::from_secs(12) });
}

#[tokio::test]
async fn what_was_sent_and_not_answered_is_unknown() {
    let (base, _) = server(Play::Reset).await;
    assert!(matches!(error_of(&base, LONG).await, Error::UnknownOutcome { .. }));
    let (base, _) = server(Play::SayAndClose("")).await;
    assert!(matches!(error_of(&base, LONG).await, Error::UnknownOutcome { .. }));
    let (base, _) = server(Play::SayAndStall("")).await;
    assert!(matches!(error_of(&base, SHORT).await, Error::UnknownOutcome { .. }));
    let (base, _) = server(Play::SayAndClose("SSH-2.0-OpenSSH_9.2\r\n")).await;
    assert!(matches!(error_of(&base, LONG).await, Error::UnknownOutcome { .. }));
}

#[tokio::test]
async fn what_could_not_be_sent_is_unreachable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let error = error_of(&base, LONG).await;
    assert!(matches!(&error, Error::Unreachable { reason, .. } if reason.contains("refused")), "{error}");
    // The peer speaks no TLS.
    let (base, _) = server(Play::SayAndClose("HTTP/1.1 400 Bad Request\r\n\r\n")).await;
    let error = error_of(&base.replace("http://", "https://"), LONG).await;
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
}

#[tokio::test]
async fn a_redirection_is_not_followed() {
    let (elsewhere, requests) = server(Play::Say("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")).await;
    let location =
        format!("HTTP/1.1 307 Temporary Redirect\r\nlocation: {elsewhere}/bot{TOKEN}/x\r\ncontent-length: 0\r\n\r\n");
    let (base, _) = server(Play::Say(location.leak())).await;
    assert!(matches!(error_of(&base, LONG).await, Error::BadAnswer { status: 307, .. }));
    assert!(requests.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_server_that_repeats_the_url_does_not_give_the_token_away() {
    let body = format!(r#"{{"ok":false,"error_code":404,"description":"Not Found: no route for bot{TOKEN}"}}"#);
    let answer = format!("HTTP/1.1 404 Not Found\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let (base, _) = server(Play::Say(answer.leak())).await;
    let error = client(&base).call("sendMessage", Bytes::new(), LONG).await.unwrap_err();
    assert_eq!(error.to_string(), "Telegram API error [404] on sendMessage: no route for bot123456789:[token]");
}

#[tokio::test]
async fn a_body_without_end_is_given_up() {
    let endless = "x".repeat((20 << 20) + 1);
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{endless}", endless.len());
    let (base, _) = server(Play::SayAndClose(answer.leak())).await;
    let error = error_of(&base, LONG).await;
    assert!(error.to_string().ends_with("it is longer than 20 MiB"), "{error}");
}
