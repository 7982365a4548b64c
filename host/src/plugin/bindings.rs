//! What `wasmtime` makes of the WIT files: one trait for each imported interface, one call for each export.

#![allow(missing_docs, reason = "generated; the WIT files hold the documentation")]

wasmtime::component::bindgen!({
    path: "../sdk/wit",
    world: "botyard:plugin/plugin",
    imports: {
        "botyard:telegram/bot-api.call": async | trappable,
        "botyard:http/client.send": async | trappable,
        "botyard:clock/clock.sleep": async | trappable,
        "botyard:files/files": async | trappable,
        default: trappable,
    },
    exports: { default: async },
    additional_derives: [PartialEq],
});
