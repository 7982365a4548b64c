/* The part of Botyard's plugin interface (sdk/wit, version 0.1.0) that this plugin uses, as the canonical ABI lays it out
 * for wasm32. A record is a struct, a list or string is its address and length, an option or variant begins with a byte
 * that says which case it is. What another plugin needs beyond this can be read off the WIT files in the same way. */

#ifndef BOTYARD_H
#define BOTYARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct { const char *at; size_t length; } string;
typedef struct { bool some; string value; } option_string;
typedef struct { bool some; int64_t value; } option_s64;
typedef struct { const string *at; size_t length; } list_string;

/* A text written in the source. */
#define TEXT(text) { text, sizeof(text) - 1 }

/* botyard:types/types */

typedef struct { option_s64 chat_id, user_id, thread_id; } state_key;
typedef struct { string name, args; } command;
typedef struct { bool some; command value; } option_command;

typedef struct {
    int64_t id;
    string kind;
    option_s64 chat_id;
    option_string chat_type;
    option_s64 thread_id, message_id, user_id;
    string locale;
    option_string text;
    option_command command;
    option_string callback_data;
    string raw;
} update;

enum { EVENT_UPDATE, EVENT_ALBUM, EVENT_TIMER, EVENT_JOB, EVENT_EXPIRED, EVENT_OTHER };

typedef struct { string message; bool retry; } failure;

typedef struct {
    uint64_t id;
    uint32_t attempt;
    uint64_t now, seed;
    state_key key;
    string locale;
    struct { const uint32_t *at; size_t length; } matched;
    uint8_t event;
    update update; /* where `event` is EVENT_UPDATE; the largest of the cases */
    struct { bool some; failure value; } failed;
} invocation;

/* botyard:plugin/handler */

typedef struct {
    list_string kinds, chat_types, commands;
    option_string callback_prefix, text_regex;
    bool plain_text;
    list_string text_keys, states;
    option_string condition;
    bool observe;
} filter;

typedef struct { string name, description_key; list_string menus; } command_help;

typedef struct {
    string name, version, description;
    struct { const filter *at; size_t length; } filters;
    struct { const command_help *at; size_t length; } commands;
    string key;
    uint32_t state_version;
    struct { const void *at; size_t length; } catalogs;
    list_string methods, http;
    struct { const void *at; size_t length; } schedules;
    bool expired, recovers;
} manifest;

enum { OK, ERR };
enum { DONE, PASS };

/* result<verdict, failure> */
typedef struct {
    uint8_t result;
    union {
        uint8_t verdict;
        failure failure;
    };
} outcome;

#define EXPORT(name) __attribute__((export_name("botyard:plugin/handler@0.1.0#" name)))

/* botyard:telegram/bot-api */

enum { REFUSED, FLOODED, UNKNOWN_OUTCOME, UNREACHABLE, DENIED, INVALID };

/* result<_, call-error>; `text` is there in all cases but REFUSED and FLOODED */
typedef struct {
    _Alignas(8) uint8_t result;
    _Alignas(8) uint8_t error;
    _Alignas(8) string text;
    uint64_t rest[3];
} call_result;

/* priority, delivery, long_text and bad_markup: 0 is the default of each */
__attribute__((import_module("botyard:telegram/bot-api@0.1.0"), import_name("enqueue")))
void enqueue(const char *method, size_t method_length, const char *params, size_t params_length,
             int32_t priority, int32_t delivery, int32_t long_text, int32_t bad_markup, call_result *result);

#endif
