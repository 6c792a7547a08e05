// One slice a core and block, named tenant/request/first layer; conflicts and misses are instants,
// the level of interference and the queue are counters. Times are microseconds from the first
// record, as the format wants.
#include "report/timeline.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PID = 1 };

typedef struct Lane {  // what a core is in
    const Record *start;
    TimeNs        since;
} Lane;

typedef struct Scribe {
    FILE           *f;
    const Timeline *t;
    Lane            lanes[CORES_MAX];
    TimeNs          zero, queue_at;
    int64_t         queue, told;  // requests that wait
    bool            first;
} Scribe;

static double us(const Scribe *s, TimeNs at) { return (double)(at - s->zero) / 1e3; }

// Takes the event.
static Err put(Scribe *s, json_t *event) {
    if (event == NULL) return err_set(ERR_INVALID, "a name in the trace is not UTF-8");
    char *text = json_dumps(event, JSON_COMPACT | JSON_REAL_PRECISION(15));
    json_decref(event);
    if (text == NULL) return err_set(ERR_LIMIT, "no memory for an event of the trace");
    (void)fprintf(s->f, "%s%s", s->first ? "" : ",\n", text);
    s->first = false;
    free(text);
    return ERR_OK;
}

static const char *tenant_name(const Scribe *s, uint32_t i) {
    return i < s->t->n_tenants ? s->t->tenants[i] : "?";
}

static void slice_name(const Scribe *s, const Record *r, char *out, size_t size) {
    const char *layer = s->t->layer != NULL ? s->t->layer(s->t->self, r->tenant, r->first) : NULL;
    if (layer != NULL)
        (void)snprintf(out, size, "%s/%" PRIu64 "/%s", tenant_name(s, r->tenant), r->request,
                       layer);
    else
        (void)snprintf(out, size, "%s/%" PRIu64 "/%u", tenant_name(s, r->tenant), r->request,
                       r->first);
}

static Err close_lane(Scribe *s, uint32_t core, TimeNs at) {
    Lane         *lane = &s->lanes[core];
    const Record *r = lane->start;
    char          name[192];
    if (r == NULL) return ERR_OK;
    lane->start = NULL;
    slice_name(s, r, name, sizeof name);
    return put(s, json_pack("{s:s,s:s,s:s,s:f,s:f,s:i,s:i,s:{s:s,s:I,s:I,s:I,s:I,s:I,s:I}}", "ph",
                            "X", "cat", "block", "name", name, "ts", us(s, lane->since), "dur",
                            (double)(at - lane->since) / 1e3, "pid", PID, "tid", (int)core, "args",
                            "tenant", tenant_name(s, r->tenant), "request", (json_int_t)r->request,
                            "first", (json_int_t)r->first, "layers", (json_int_t)r->n_layers,
                            "cores", (json_int_t)cores_count(&r->cores), "wanted",
                            (json_int_t)r->wanted, "level", (json_int_t)r->level));
}

static Err open_lanes(Scribe *s, const Record *r, const Record *start) {
    for (uint32_t c = cores_next(&r->cores, 0); c < CORES_MAX; c = cores_next(&r->cores, c + 1)) {
        TRY(close_lane(s, c, r->at));
        s->lanes[c] = (Lane){start, r->at};
        if (c + 1 == CORES_MAX) break;
    }
    return ERR_OK;
}

static const Record *running(const Scribe *s, uint64_t request) {
    for (uint32_t c = 0; c < CORES_MAX; c++)
        if (s->lanes[c].start != NULL && s->lanes[c].start->request == request)
            return s->lanes[c].start;
    return NULL;
}

static Err close_request(Scribe *s, uint64_t request, TimeNs at) {
    for (uint32_t c = 0; c < CORES_MAX; c++)
        if (s->lanes[c].start != NULL && s->lanes[c].start->request == request)
            TRY(close_lane(s, c, at));
    return ERR_OK;
}

static Err instant(Scribe *s, const Record *r, const char *what, const char *scope, uint32_t core) {
    return put(s, json_pack("{s:s,s:s,s:s,s:s,s:f,s:i,s:i,s:{s:s,s:I,s:s}}", "ph", "i", "s", scope,
                            "cat", what, "name", what, "ts", us(s, r->at), "pid", PID, "tid",
                            (int)core, "args", "tenant", tenant_name(s, r->tenant), "request",
                            (json_int_t)r->request, "why", r->why != NULL ? r->why : ""));
}

static Err counter(Scribe *s, const char *name, TimeNs at, int64_t value) {
    return put(s, json_pack("{s:s,s:s,s:f,s:i,s:{s:I}}", "ph", "C", "name", name, "ts", us(s, at),
                            "pid", PID, "args", name, (json_int_t)value));
}

// Several things happen at one time; the queue is told when that time is over.
static Err tell_queue(Scribe *s, TimeNs now) {
    if (now == s->queue_at) return ERR_OK;
    if (s->queue != s->told) TRY(counter(s, "queue", s->queue_at, s->queue));
    s->told = s->queue;
    s->queue_at = now;
    return ERR_OK;
}

static Err started(Scribe *s, const Record *r) {
    s->queue--;
    if (r->wanted > cores_count(&r->cores))
        TRY(instant(s, r, "conflict", "t", cores_next(&r->cores, 0)));
    return open_lanes(s, r, r);
}

static Err grown(Scribe *s, const Record *r) {
    const Record *start = running(s, r->request);
    return start != NULL ? open_lanes(s, r, start) : ERR_OK;
}

static Err write_record(Scribe *s, const Record *r) {
    TRY(tell_queue(s, r->at));
    switch (r->kind) {
    case RECORD_ARRIVE: s->queue++; return ERR_OK;
    case RECORD_START: return started(s, r);
    case RECORD_GROW: return grown(s, r);
    case RECORD_END: s->queue++; return close_request(s, r->request, r->at);
    case RECORD_FINISH:
    case RECORD_REJECT: s->queue--; break;
    case RECORD_LEVEL: return counter(s, "level", r->at, r->level);
    case RECORD_REFUSE: return instant(s, r, "refused plan", "p", 0);
    case RECORD_KINDS: return ERR_OK;
    }
    if (r->outcome == OUTCOME_MET) return ERR_OK;
    return instant(s, r, outcome_name(r->outcome), "p", 0);
}

static Err name_tracks(Scribe *s) {
    TRY(put(s, json_pack("{s:s,s:s,s:i,s:{s:s}}", "ph", "M", "name", "process_name", "pid", PID,
                         "args", "name", s->t->title)));
    for (uint32_t c = 0; c < s->t->n_cores; c++) {
        char name[32];
        (void)snprintf(name, sizeof name, "core %u", c);
        TRY(put(s, json_pack("{s:s,s:s,s:i,s:i,s:{s:s}}", "ph", "M", "name", "thread_name", "pid",
                             PID, "tid", (int)c, "args", "name",
                             s->t->tracks != NULL ? s->t->tracks[c] : name)));
        TRY(put(s, json_pack("{s:s,s:s,s:i,s:i,s:{s:i}}", "ph", "M", "name", "thread_sort_index",
                             "pid", PID, "tid", (int)c, "args", "sort_index", (int)c)));
    }
    return ERR_OK;
}

static Err write_events(Scribe *s, const RecordList *records) {
    TRY(name_tracks(s));
    for (uint32_t i = 0; i < records->n; i++) TRY(write_record(s, &records->at[i]));
    TRY(tell_queue(s, INT64_MAX));
    TimeNs end = records->n > 0 ? records->at[records->n - 1].at : 0;
    for (uint32_t c = 0; c < CORES_MAX; c++) TRY(close_lane(s, c, end));
    return ERR_OK;
}

Err timeline_write(FILE *f, const Timeline *t, const RecordList *records, Arena *scratch) {
    size_t  mark = scratch->used;
    Scribe *s = arena_new(scratch, Scribe, 1);
    *s = (Scribe){.f = f, .t = t, .first = true};
    if (records->n > 0) s->zero = s->queue_at = records->at[0].at;
    (void)fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n", f);
    Err e = write_events(s, records);
    (void)fputs("\n]}\n", f);
    arena_rewind(scratch, mark);
    if (e == ERR_OK && (fflush(f) != 0 || ferror(f) != 0))
        e = err_set(ERR_IO, "writing the trace failed: %s", strerror(errno));
    return e;
}
