/* Answers /hello: a plugin without Rust and without an SDK.
 *
 * Built by `cargo xtask plugins` where clang and lld are installed, or by hand:
 *
 *   clang --target=wasm32 -O2 -nostdlib -Wl,--no-entry -o hello-c.wasm hello.c
 */

#include "botyard.h"

/* The host puts what it passes in here. Every run has a fresh instance, so nothing is ever given back. */
extern uint8_t __heap_base;
static uint8_t *heap = &__heap_base;

__attribute__((export_name("cabi_realloc")))
void *cabi_realloc(void *old, size_t old_size, size_t align, size_t size)
{
    uintptr_t at = ((uintptr_t)heap + align - 1) & ~(uintptr_t)(align - 1);
    uintptr_t end = at + size, there = __builtin_wasm_memory_size(0) * 65536;
    if (end < at || (end > there && __builtin_wasm_memory_grow(0, (end - there + 65535) / 65536) == (size_t)-1))
        __builtin_trap();
    heap = (uint8_t *)end;
    for (size_t i = 0; i < old_size && i < size; i++)
        ((uint8_t *)at)[i] = ((uint8_t *)old)[i];
    return (void *)at;
}

/* A text that grows at the end of the heap, which is its own until it is done. */
typedef struct { char *at; size_t length; } buffer;

static void put(buffer *to, char c)
{
    char *at = cabi_realloc(0, 0, 1, 1);
    if (!to->at)
        to->at = at;
    *at = c;
    to->length++;
}

static void put_text(buffer *to, string text)
{
    for (size_t i = 0; i < text.length; i++)
        put(to, text.at[i]);
}

static void put_json(buffer *to, string text)
{
    static const char hex[] = "0123456789abcdef";
    for (size_t i = 0; i < text.length; i++) {
        unsigned char c = (unsigned char)text.at[i];
        if (c == '"' || c == '\\') {
            put(to, '\\');
            put(to, (char)c);
        } else if (c < 0x20) {
            put_text(to, (string)TEXT("\\u00"));
            put(to, hex[c >> 4]);
            put(to, hex[c & 15]);
        } else {
            put(to, (char)c);
        }
    }
}

static void put_number(buffer *to, int64_t number)
{
    char digits[20];
    size_t count = 0;
    uint64_t left = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    if (number < 0)
        put(to, '-');
    do
        digits[count++] = (char)('0' + left % 10);
    while (left /= 10);
    while (count)
        put(to, digits[--count]);
}

static const string methods[] = { TEXT("sendMessage") };
static const string hello[] = { TEXT("hello") };
static const filter filters[] = { { .commands = { hello, 1 } } };
static const command_help commands[] = { { .name = TEXT("hello"), .description_key = TEXT("Say hello, from C") } };

static const manifest about = {
    .name = TEXT("hello-c"),
    .version = TEXT("0.1.0"),
    .description = TEXT("Answers /hello; written in C"),
    .filters = { filters, 1 },
    .commands = { commands, 1 },
    .key = TEXT("chat"),
    .methods = { methods, 1 },
};

EXPORT("describe")
const manifest *describe(void)
{
    return &about;
}

EXPORT("handle")
const outcome *handle(const invocation *run)
{
    static outcome done = { .result = OK, .verdict = DONE };
    static outcome pass = { .result = OK, .verdict = PASS };
    if (run->event != EVENT_UPDATE || !run->update.command.some || !run->update.chat_id.some)
        return &pass;

    string name = run->update.command.value.args;
    buffer params = { 0, 0 };
    put_text(&params, (string)TEXT("{\"chat_id\":"));
    put_number(&params, run->update.chat_id.value);
    put_text(&params, (string)TEXT(",\"text\":\"Hello, "));
    put_json(&params, name.length ? name : (string)TEXT("world"));
    put_text(&params, (string)TEXT("!\"}"));

    call_result answer;
    enqueue(methods[0].at, methods[0].length, params.at, params.length, 0, 0, 0, 0, &answer);
    if (answer.result == ERR) {
        static outcome failed = { .result = ERR };
        failed.failure.message = answer.error == REFUSED || answer.error == FLOODED ? (string)TEXT("refused") : answer.text;
        return &failed;
    }
    return &done;
}

/* Keeps no states, so there is none to take over. */
EXPORT("migrate")
const void *migrate(const char *name, size_t name_length, uint32_t version, const uint8_t *bytes, size_t bytes_length)
{
    (void)name, (void)name_length, (void)version, (void)bytes, (void)bytes_length;
    __builtin_trap();
}
