//! The operators' page: one file, nothing from elsewhere, and only what `/api` answers with.
//!
//! It has nothing that `/api` would not give its reader, and changes things only through it; so whoever is refused there
//! sees an empty page here.

use axum::Router;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;

const PAGE: &str = include_str!("page/index.html");
const SCRIPT: &str = include_str!("page/page.js");
const STYLE: &str = include_str!("page/page.css");
/// Nothing from elsewhere, nothing inline, and in no other page's frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(super) fn routes() -> Router {
    let file = |kind: &'static str, content: &'static str| {
        get(move || async move {
            let headers = [
                (header::CONTENT_TYPE, kind),
                (header::CONTENT_SECURITY_POLICY, POLICY),
                (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
                (header::REFERRER_POLICY, "no-referrer"),
                (header::CACHE_CONTROL, "no-cache"),
            ];
            (headers, content).into_response()
        })
    };
    Router::new()
        .route("/", file("text/html; charset=utf-8", PAGE))
        .route("/page.js", file("text/javascript; charset=utf-8", SCRIPT))
        .route("/page.css", file("text/css; charset=utf-8", STYLE))
}
