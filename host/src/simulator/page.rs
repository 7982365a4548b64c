//! The chat page: static files, compiled in. They load nothing from elsewhere, and may not (see the policy).

use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::response::{IntoResponse, Response};

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src 'self' data:; media-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Path, type and content of every file.
pub(super) const FILES: [(&str, &str, &str); 22] = [
    ("/", HTML, include_str!("page/index.html")),
    ("/base.css", CSS, include_str!("page/base.css")),
    ("/cards.css", CSS, include_str!("page/cards.css")),
    ("/chat.css", CSS, include_str!("page/chat.css")),
    ("/inside.css", CSS, include_str!("page/inside.css")),
    ("/about.js", SCRIPT, include_str!("page/about.js")),
    ("/buttons.js", SCRIPT, include_str!("page/buttons.js")),
    ("/cards.js", SCRIPT, include_str!("page/cards.js")),
    ("/clock.js", SCRIPT, include_str!("page/clock.js")),
    ("/composer.js", SCRIPT, include_str!("page/composer.js")),
    ("/dialogs.js", SCRIPT, include_str!("page/dialogs.js")),
    ("/dom.js", SCRIPT, include_str!("page/dom.js")),
    ("/format.js", SCRIPT, include_str!("page/format.js")),
    ("/inside.js", SCRIPT, include_str!("page/inside.js")),
    ("/json.js", SCRIPT, include_str!("page/json.js")),
    ("/log.js", SCRIPT, include_str!("page/log.js")),
    ("/main.js", SCRIPT, include_str!("page/main.js")),
    ("/panel.js", SCRIPT, include_str!("page/panel.js")),
    ("/pay.js", SCRIPT, include_str!("page/pay.js")),
    ("/popup.js", SCRIPT, include_str!("page/popup.js")),
    ("/state.js", SCRIPT, include_str!("page/state.js")),
    ("/view.js", SCRIPT, include_str!("page/view.js")),
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
