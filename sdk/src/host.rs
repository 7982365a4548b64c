//! The one door to the host.
//!
//! In a guest these are the imports themselves. Natively, where there is no host, [`crate::test`] stands in for it, so
//! that handlers can be run by plain tests.

#[cfg(target_arch = "wasm32")]
mod imports {
    use crate::bindings::botyard::{
        broadcast, clock, config, files, fsm, http, i18n, jobs, log, random, schedule, storage, telegram,
    };

    pub(crate) use broadcast::broadcasts::{
        cancel as broadcast_cancel, pause as broadcast_pause, resume as broadcast_resume, start as broadcast_start,
        status as broadcast_status,
    };
    pub(crate) use clock::clock::sleep;
    pub(crate) use config::config::{get as config, secret};
    pub(crate) use files::files::{
        append as file_append, attach as file_attach, create as file_create, finish as file_finish, open as file_open,
        read as file_read,
    };
    pub(crate) use fsm::conversation::{
        clear as state_clear, drop_lost, get as state_get, lost, peek as state_peek, set as state_set,
        unreadable as state_unreadable,
    };
    pub(crate) use http::client::send as http_send;
    pub(crate) use i18n::catalogs::{available as catalogs_available, translate, translate_markup};
    pub(crate) use i18n::languages::{
        choose as language_choose, chosen as language_chosen, of_user as language_of_user,
    };
    pub(crate) use jobs::jobs::{cancel as job_cancel, enqueue as job_enqueue, status as job_status};
    pub(crate) use log::log::{emit, panicked};
    pub(crate) use random::random::bytes as random_bytes;
    pub(crate) use schedule::timers::{
        after as timer_after, at as timer_at, cancel as timer_cancel, cancel_by_name as timer_cancel_by_name,
        cron as timer_cron, every as timer_every, list as timer_list,
    };
    pub(crate) use storage::key_value::{compare_and_set, delete, get, increment, scan, set};
    pub(crate) use telegram::bot_api::{call, enqueue, keep_action};
    pub(crate) use telegram::chats::known as known_chat;
}

#[cfg(not(target_arch = "wasm32"))]
#[path = "host/native.rs"]
mod imports;

pub(crate) use imports::*;
