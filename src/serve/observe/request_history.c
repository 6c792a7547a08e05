// Requests are numbered and lie in a ring. Requests with ids in one hash bucket are chained by
// number, newest first, and so are misses. A number that the ring has overwritten ends a chain, so
// entries are never unlinked.
#include "serve/observe/request_history.h"

#include <string.h>

#include "base/hash.h"
#include "base/str_buf.h"

enum { EXPLAIN_BYTES = 16384 };
#define NONE UINT64_MAX

typedef struct HistoryEntry {
    Receipt  receipt;
    uint64_t same, missed;  // previous request in its bucket; previous miss
} HistoryEntry;

struct RequestHistory {
    Arena         arena;
    HistoryEntry *entries;  // [room]
    uint64_t     *heads;    // [room] newest of each bucket
    uint64_t      missed;   // the newest miss
    uint64_t      n;        // requests so far
    uint32_t      room;
};

Err request_history_create(RequestHistory **out, uint32_t requests) {
    Arena  a = {0};
    size_t room = requests > 0 ? requests : 1;
    TRY(arena_init(&a,
                   sizeof(RequestHistory) + room * (sizeof(HistoryEntry) + sizeof(uint64_t)) + 64));
    RequestHistory *l = arena_new(&a, RequestHistory, 1);
    l->room = (uint32_t)room;
    l->entries = arena_new(&a, HistoryEntry, room);
    l->heads = arena_new(&a, uint64_t, room);
    for (size_t i = 0; i < room; i++) l->heads[i] = NONE;
    l->missed = NONE;
    l->arena = a;
    *out = l;
    return ERR_OK;
}

void request_history_destroy(RequestHistory *l) {
    if (l == NULL) return;
    Arena a = l->arena;
    arena_finish(&a);
}

// Clients may choose colliding ids; a chain is at most as long as the ring.
static uint32_t bucket(const RequestHistory *l, const char *id, size_t len) {
    uint64_t h = hash_fnv(HASH_FNV_START, id, len);
    return (uint32_t)((h ^ h >> 32) % l->room);
}

static bool kept(const RequestHistory *l, uint64_t number) {
    return number != NONE && number < l->n && l->n - number <= l->room;
}

static HistoryEntry *entry(const RequestHistory *l, uint64_t number) {
    return &l->entries[number % l->room];
}

void request_history_add(RequestHistory *l, const Receipt *r) {
    uint32_t       b = bucket(l, r->id, strnlen(r->id, RECEIPT_ID));
    uint64_t       number = l->n++;
    ReceiptOutcome o = receipt_outcome(r);
    HistoryEntry  *e = entry(l, number);
    e->receipt = *r;
    e->same = l->heads[b];
    l->heads[b] = number;
    e->missed = NONE;
    if (o != RECEIPT_OUTCOME_MISSED && o != RECEIPT_OUTCOME_REJECTED) return;
    e->missed = l->missed;
    l->missed = number;
}

const Receipt *request_history_find(const RequestHistory *l, Str id) {
    if (id.len >= RECEIPT_ID) return NULL;
    for (uint64_t i = l->heads[bucket(l, id.at, id.len)]; kept(l, i); i = entry(l, i)->same) {
        const Receipt *r = &entry(l, i)->receipt;
        if (strlen(r->id) == id.len && memcmp(r->id, id.at, id.len) == 0) return r;
    }
    return NULL;
}

static void put_ms(StrBuf *s, const char *key, TimeNs t) {
    str_buf_printf(s, ",\"%s_ms\":", key);
    str_buf_number(s, (double)t / 1e6);
}

static TimeNs span(TimeNs from, TimeNs to) { return from > 0 && to > from ? to - from : 0; }

static void put_stages(StrBuf *s, const Receipt *r) {
    const LiveTiming *t = &r->timing;
    str_buf_text(s, ",\"stages\":{\"receive_ms\":");
    str_buf_number(s, (double)span(r->began, r->arrived) / 1e6);
    put_ms(s, "decode", span(r->arrived, r->decoded));
    put_ms(s, "compile", span(r->decoded, r->submitted));
    put_ms(s, "queue", receipt_queued(r));
    put_ms(s, "compute", t->compute_ns);
    put_ms(s, "paused", t->paused_ns);
    put_ms(s, "answer", span(r->finished, r->answered));
    str_buf_text(s, "}");
}

static void put_engine(StrBuf *s, const Receipt *r) {
    const LiveTiming *t = &r->timing;
    if (r->submitted == 0) return;
    str_buf_printf(s, ",\"degraded\":%s,\"waiting_before\":%u,\"behind\":",
                   t->degraded ? "true" : "false", t->waiting);
    str_buf_json(s, r->behind);
    str_buf_text(s, ",\"paused_by\":");
    str_buf_json(s, r->paused_by);
    str_buf_printf(s,
                   ",\"blocks\":%u,\"pauses\":%u,\"conflicts\":%u,\"cores\":[%u,%u],\"level\":%u",
                   t->blocks, t->pauses, t->conflicts, t->cores_least, t->cores_most, t->level);
    str_buf_text(s, ",\"within_compute\":{\"interference_ms\":");
    str_buf_number(s, (double)t->interference_ns / 1e6);
    put_ms(s, "core_shortage", t->core_shortage_ns);
    put_ms(s, "stolen", t->stolen_ns);
    put_ms(s, "cores", t->core_ns);
    str_buf_text(s, "},\"layers_by_version\":[");
    for (uint32_t i = 0; i < LIVE_VERSIONS; i++)
        str_buf_printf(s, "%s%u", i > 0 ? "," : "", t->versions[i]);
    str_buf_text(s, "]");
}

static void put_cause(StrBuf *s, const Receipt *r) {
    ReceiptCause c = receipt_cause(r);
    str_buf_printf(s, ",\"cause\":\"%s\",\"why\":", receipt_cause_name(c));
    str_buf_json(s, r->cause);
    str_buf_text(s, ",\"advice\":");
    str_buf_json(s, receipt_advice(c));
}

static void put_deadline(StrBuf *s, const Receipt *r) {
    if (r->deadline > 0) put_ms(s, "deadline", span(r->arrived, r->deadline));
    if (r->expire > 0) put_ms(s, "timeout", span(r->arrived, r->expire));
    put_ms(s, "latency", receipt_latency(r));
    str_buf_printf(s, ",\"outcome\":\"%s\"", receipt_outcome_name(receipt_outcome(r)));
}

static void put_receipt(StrBuf *s, const Receipt *r) {
    str_buf_text(s, "{\"id\":");
    str_buf_json(s, r->id);
    str_buf_text(s, ",\"model\":");
    str_buf_json(s, r->model);
    str_buf_text(s, ",\"version\":");
    str_buf_json(s, r->version);
    str_buf_printf(s, ",\"protocol\":\"%s\",\"end\":\"%s\",\"status\":%u,\"batch\":%u",
                   r->protocol == RECEIPT_GRPC ? "grpc" : "rest", receipt_end_name(r->end),
                   r->protocol == RECEIPT_GRPC ? receipt_grpc_status(r->end)
                                               : receipt_http_status(r->end),
                   r->batch);
    str_buf_printf(s, ",\"in_bytes\":%llu,\"out_bytes\":%llu", (unsigned long long)r->in_bytes,
                   (unsigned long long)r->out_bytes);
    put_deadline(s, r);
    put_stages(s, r);
    put_engine(s, r);
    put_cause(s, r);
    str_buf_text(s, "}");
}

Err request_history_json(const Receipt *r, Arena *a, Str *out) {
    StrBuf s;
    str_buf_begin(&s, a, EXPLAIN_BYTES);
    put_receipt(&s, r);
    return str_buf_end(&s, out);
}

Err request_history_misses(const RequestHistory *l, uint32_t n, Arena *a, Str *out) {
    StrBuf   s;
    uint64_t i = l->missed;
    str_buf_begin(&s, a, (size_t)EXPLAIN_BYTES * ((size_t)n + 1));
    str_buf_text(&s, "[");
    for (uint32_t k = 0; k < n && kept(l, i); k++, i = entry(l, i)->missed) {
        if (k > 0) str_buf_text(&s, ",\n");
        put_receipt(&s, &entry(l, i)->receipt);
    }
    str_buf_text(&s, "]");
    return str_buf_end(&s, out);
}
