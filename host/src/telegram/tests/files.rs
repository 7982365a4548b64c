//! Files over real sockets: what is told when they break off, and that nothing tells the token.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

/// Reads so many bytes of a request, then says this and closes, with a reset if there is nothing to say.
async fn server(read: usize, say: &'static [u8]) -> Client {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut buffer = vec![0; 64 << 10];
            let mut seen = 0;
            while seen < read {
                match stream.read(&mut buffer).await {
                    Ok(some) if some > 0 => seen += some,
                    _ => break,
                }
            }
            if say.is_empty() {
                stream.set_zero_linger().unwrap();
            } else {
                stream.write_all(say).await.unwrap();
                stream.flush().await.unwrap();
            }
        }
    });
    Client::new(&base, Token::parse(TOKEN).unwrap()).unwrap()
}

fn assert_silent(error: &(impl std::fmt::Display + std::fmt::Debug)) {
    let secret = TOKEN.split_once(':').unwrap().1;
    for shown in [error.to_string(), format!("{error:?}")] {
        assert!(!shown.contains(secret) && !shown.contains("/bot") && !shown.contains("http://"), "{shown}");
    }
}

fn body(folder: &tempfile::TempDir, size: usize) -> Multipart {
    let path = folder.path().join("content");
    std::fs::write(&path, vec![7; size]).unwrap();
    let part = FilePart {
        field: "a".into(),
        name: "a.bin".into(),
        content_type: String::new(),
        path,
        size: size as u64,
        hash: [7; 32],
    };
    Multipart::new(&[("chat_id".into(), "7".into())], &[part])
}

#[tokio::test]
async fn a_body_that_breaks_off_had_no_effect_and_a_whole_one_may_have() {
    let folder = tempfile::tempdir().unwrap();
    // More than all the buffers between.
    let large = body(&folder, 40 << 20);
    let broken = server(1 << 20, b"").await.upload("sendDocument", &large).await.unwrap_err();
    assert!(matches!(broken, Error::Unreachable { .. }), "{broken:?}");
    assert_silent(&broken);
    let small = body(&folder, 1000);
    let whole = server(1200, b"").await.upload("sendDocument", &small).await.unwrap_err();
    assert!(matches!(whole, Error::UnknownOutcome { .. }), "{whole:?}");
    assert_silent(&whole);
    let nobody = Client::new("http://127.0.0.1:9", Token::parse(TOKEN).unwrap()).unwrap();
    let error = nobody.upload("sendDocument", &small).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
    assert_silent(&error);
}

#[tokio::test]
async fn too_large_as_a_page_is_a_refusal() {
    let folder = tempfile::tempdir().unwrap();
    let page = b"HTTP/1.1 413 Request Entity Too Large\r\ncontent-type: text/html\r\ncontent-length: 12\r\n\r\n<html>\n413\n\n";
    let error = server(1200, page).await.upload("sendDocument", &body(&folder, 1000)).await.unwrap_err();
    assert!(matches!(error, Error::Refused { code: 413, .. }), "{error:?}");
}

#[tokio::test]
async fn a_download_is_bounded_whole_and_silent() {
    let file = tempfile::tempfile().unwrap();
    let fetch = async |say, limit| server(1, say).await.download("documents/a.txt", &file, limit).await;
    let ok = b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\ncontent";
    assert_eq!(fetch(ok, 7).await, Ok(7));
    assert_eq!(fetch(ok, 6).await, Err(DownloadError::TooLarge(6)));
    assert_eq!(fetch(b"HTTP/1.1 200 OK\r\n\r\nwithout a length", 6).await, Err(DownloadError::TooLarge(6)));
    assert_eq!(fetch(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", 7).await, Err(DownloadError::Gone(404)));
    for say in [
        &b"HTTP/1.1 200 OK\r\ncontent-length: 70\r\n\r\ncut"[..],
        b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n",
        b"",
    ] {
        let error = fetch(say, 100).await.unwrap_err();
        assert!(matches!(error, DownloadError::Transient(_)), "{error:?}");
        assert_silent(&error);
    }
}
