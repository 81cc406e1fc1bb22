//! The page, out of the program itself. Until it is part of it: what else there is.

use axum::http::{StatusCode, Uri};
use axum::response::{Html, IntoResponse, Response};

pub(crate) async fn serve(uri: Uri) -> Response {
    if uri.path() != "/" {
        return (StatusCode::NOT_FOUND, "there is no such page\n").into_response();
    }
    Html(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Halftrack tanks</title>\
         <p>The server runs. This build has no page to play on: \
         <a href=\"/config.json\">config</a>, <a href=\"/metrics\">metrics</a>, <a href=\"/healthz\">health</a>.</p>",
    )
    .into_response()
}
