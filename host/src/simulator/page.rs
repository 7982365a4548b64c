//! The chat page: static files, compiled in. They load nothing from elsewhere, and may not (see the policy).

use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::response::{IntoResponse, Response};

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src 'self' data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Path, type and content of every file.
pub(super) const FILES: [(&str, &str, &str); 8] = [
    ("/", HTML, include_str!("page/index.html")),
    ("/chat.css", CSS, include_str!("page/chat.css")),
    ("/chat.js", SCRIPT, include_str!("page/chat.js")),
    ("/state.js", SCRIPT, include_str!("page/state.js")),
    ("/log.js", SCRIPT, include_str!("page/log.js")),
    ("/suggest.js", SCRIPT, include_str!("page/suggest.js")),
    ("/view.js", SCRIPT, include_str!("page/view.js")),
    ("/format.js", SCRIPT, include_str!("page/format.js")),
];

/// Serves one of them.
pub(super) fn file(content_type: &'static str, content: &'static str) -> Response {
    let headers = [
        (CONTENT_TYPE, content_type),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-cache"),
    ];
    (headers, content).into_response()
}
