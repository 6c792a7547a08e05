// A block is a slice on each of its cores, named tenant/request/first layer; conflicts and missed
// deadlines are instants; interference level and queue length are counters; requests are
// asynchronous slices. Times are microseconds since the first record, as the trace event format
// requires.
#include "report/timeline.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PID = 1, TAIL_BYTES = 256 };  // TAIL_BYTES: room for the end of the document

typedef struct CoreTrack {  // the block that a core runs
    const Record *start;
    TimeNs        since;
} CoreTrack;

typedef struct TraceWriter {
    FILE           *f;
    const Timeline *t;
    CoreTrack       tracks[CORES_MAX];
    TimeNs          zero, queue_at;
    int64_t         queue, written_queue;  // requests waiting: now, and as last written
    uint64_t        known;                 // first request with an arrival record
    size_t          len;                   // bytes written
    bool            first, cut;
} TraceWriter;

static double us(const TraceWriter *s, TimeNs at) { return (double)(at - s->zero) / 1e3; }

static Err failed(void) { return err_set(ERR_IO, "writing the trace failed: %s", strerror(errno)); }

static Err put_text(TraceWriter *s, const char *text, size_t n) {
    if (s->t->most > 0 && s->len + n + TAIL_BYTES > s->t->most) s->cut = true;
    if (s->cut) return ERR_OK;
    s->len += n + 2;
    if (fprintf(s->f, "%s%s", s->first ? "" : ",\n", text) < 0) return failed();
    s->first = false;
    return ERR_OK;
}

// Takes the reference.
static Err put(TraceWriter *s, json_t *event) {
    if (event == NULL) return err_set(ERR_INVALID, "a name in the trace is not UTF-8");
    char *text = json_dumps(event, JSON_COMPACT | JSON_REAL_PRECISION(15));
    json_decref(event);
    if (text == NULL) return err_set(ERR_LIMIT, "no memory for an event of the trace");
    Err e = put_text(s, text, strlen(text));
    free(text);
    return e;
}

static const char *tenant_name(const TraceWriter *s, uint32_t i) {
    return i < s->t->n_tenants && s->t->tenants[i] != NULL ? s->t->tenants[i] : "?";
}

static void slice_name(const TraceWriter *s, const Record *r, char *out, size_t size) {
    const char *layer = s->t->layer != NULL ? s->t->layer(s->t->self, r->tenant, r->first) : NULL;
    if (layer != NULL)
        (void)snprintf(out, size, "%s/%" PRIu64 "/%s", tenant_name(s, r->tenant), r->request,
                       layer);
    else
        (void)snprintf(out, size, "%s/%" PRIu64 "/%u", tenant_name(s, r->tenant), r->request,
                       r->first);
}

static Err close_slice(TraceWriter *s, uint32_t core, TimeNs at) {
    CoreTrack    *track = &s->tracks[core];
    const Record *r = track->start;
    char          name[192];
    if (r == NULL) return ERR_OK;
    track->start = NULL;
    slice_name(s, r, name, sizeof name);
    return put(s, json_pack("{s:s,s:s,s:s,s:f,s:f,s:i,s:i,s:{s:s,s:I,s:I,s:I,s:I,s:I,s:I}}", "ph",
                            "X", "cat", "block", "name", name, "ts", us(s, track->since), "dur",
                            (double)(at - track->since) / 1e3, "pid", PID, "tid", (int)core, "args",
                            "tenant", tenant_name(s, r->tenant), "request", (json_int_t)r->request,
                            "first", (json_int_t)r->first, "layers", (json_int_t)r->n_layers,
                            "cores", (json_int_t)cores_count(&r->cores), "wanted",
                            (json_int_t)r->wanted, "level", (json_int_t)r->level));
}

static Err open_slices(TraceWriter *s, const Record *r, const Record *start) {
    for (uint32_t c = cores_next(&r->cores, 0); c < CORES_MAX; c = cores_next(&r->cores, c + 1)) {
        TRY(close_slice(s, c, r->at));
        s->tracks[c] = (CoreTrack){start, r->at};
        if (c + 1 == CORES_MAX) break;
    }
    return ERR_OK;
}

static const Record *running(const TraceWriter *s, uint64_t request) {
    for (uint32_t c = 0; c < CORES_MAX; c++)
        if (s->tracks[c].start != NULL && s->tracks[c].start->request == request)
            return s->tracks[c].start;
    return NULL;
}

static Err close_request(TraceWriter *s, uint64_t request, TimeNs at) {
    for (uint32_t c = 0; c < CORES_MAX; c++)
        if (s->tracks[c].start != NULL && s->tracks[c].start->request == request)
            TRY(close_slice(s, c, at));
    return ERR_OK;
}

static Err instant(TraceWriter *s, const Record *r, const char *what, const char *scope,
                   uint32_t core) {
    return put(s, json_pack("{s:s,s:s,s:s,s:s,s:f,s:i,s:i,s:{s:s,s:I,s:s}}", "ph", "i", "s", scope,
                            "cat", what, "name", what, "ts", us(s, r->at), "pid", PID, "tid",
                            (int)core, "args", "tenant", tenant_name(s, r->tenant), "request",
                            (json_int_t)r->request, "why", r->why != NULL ? r->why : ""));
}

static Err counter(TraceWriter *s, const char *name, TimeNs at, int64_t value) {
    return put(s, json_pack("{s:s,s:s,s:f,s:i,s:{s:I}}", "ph", "C", "name", name, "ts", us(s, at),
                            "pid", PID, "args", name, (json_int_t)value));
}

static Err request_begins(TraceWriter *s, const Record *r) {
    if (!s->t->requests) return ERR_OK;
    return put(s, json_pack("{s:s,s:s,s:I,s:s,s:f,s:i,s:{s:I,s:f}}", "ph", "b", "cat", "request",
                            "id", (json_int_t)r->request, "name", tenant_name(s, r->tenant), "ts",
                            us(s, r->at), "pid", PID, "args", "request", (json_int_t)r->request,
                            "deadline_us", us(s, r->deadline)));
}

static Err request_ends(TraceWriter *s, const Record *r) {
    if (!s->t->requests || r->request < s->known) return ERR_OK;
    return put(s, json_pack("{s:s,s:s,s:I,s:s,s:f,s:i,s:{s:s,s:s}}", "ph", "e", "cat", "request",
                            "id", (json_int_t)r->request, "name", tenant_name(s, r->tenant), "ts",
                            us(s, r->at), "pid", PID, "args", "outcome", outcome_name(r->outcome),
                            "why", r->why != NULL ? r->why : ""));
}

// Several things happen at one time; the queue is written_queue when that time is over.
static Err flush_queue(TraceWriter *s, TimeNs now) {
    if (now == s->queue_at) return ERR_OK;
    if (s->queue != s->written_queue) TRY(counter(s, "queue", s->queue_at, s->queue));
    s->written_queue = s->queue;
    s->queue_at = now;
    return ERR_OK;
}

static Err started(TraceWriter *s, const Record *r) {
    s->queue--;
    if (r->wanted > cores_count(&r->cores))
        TRY(instant(s, r, "conflict", "t", cores_next(&r->cores, 0)));
    return open_slices(s, r, r);
}

static Err grown(TraceWriter *s, const Record *r) {
    const Record *start = running(s, r->request);
    return start != NULL ? open_slices(s, r, start) : ERR_OK;
}

static Err write_record(TraceWriter *s, const Record *r) {
    TRY(flush_queue(s, r->at));
    switch (r->kind) {
    case RECORD_ARRIVE: s->queue++; return request_begins(s, r);
    case RECORD_START: return started(s, r);
    case RECORD_GROW: return grown(s, r);
    case RECORD_END: s->queue++; return close_request(s, r->request, r->at);
    case RECORD_FINISH:
    case RECORD_REJECT:
        s->queue--;
        TRY(request_ends(s, r));
        break;
    case RECORD_LEVEL: return counter(s, "level", r->at, r->level);
    case RECORD_REFUSE: return instant(s, r, "refused plan", "p", 0);
    case RECORD_KINDS: return ERR_OK;
    }
    if (r->outcome == OUTCOME_MET) return ERR_OK;
    return instant(s, r, outcome_name(r->outcome), "p", 0);
}

static Err name_tracks(TraceWriter *s) {
    TRY(put(s, json_pack("{s:s,s:s,s:i,s:{s:s}}", "ph", "M", "name", "process_name", "pid", PID,
                         "args", "name", s->t->title)));
    for (uint32_t c = 0; c < s->t->n_cores; c++) {
        char name[32];
        (void)snprintf(name, sizeof name, "core %u", c);
        TRY(put(s, json_pack("{s:s,s:s,s:i,s:i,s:{s:s}}", "ph", "M", "name", "thread_name", "pid",
                             PID, "tid", (int)c, "args", "name",
                             s->t->track_names != NULL ? s->t->track_names[c] : name)));
        TRY(put(s, json_pack("{s:s,s:s,s:i,s:i,s:{s:i}}", "ph", "M", "name", "thread_sort_index",
                             "pid", PID, "tid", (int)c, "args", "sort_index", (int)c)));
    }
    return ERR_OK;
}

static Err write_events(TraceWriter *s, const RecordList *records) {
    TRY(name_tracks(s));
    for (uint32_t i = 0; i < records->n && !s->cut; i++) TRY(write_record(s, &records->at[i]));
    TRY(flush_queue(s, INT64_MAX));
    TimeNs end = records->n > 0 ? records->at[records->n - 1].at : 0;
    for (uint32_t c = 0; c < CORES_MAX; c++) TRY(close_slice(s, c, end));
    return ERR_OK;
}

static int64_t queue_change(const Record *r) {
    if (r->kind == RECORD_ARRIVE || r->kind == RECORD_END) return 1;
    return r->kind == RECORD_START || r->kind == RECORD_FINISH || r->kind == RECORD_REJECT ? -1 : 0;
}

// Records may begin in the middle of a run: the queue starts long enough to never become negative.
static void find_origin(TraceWriter *s, const RecordList *records) {
    int64_t queue = 0, least = 0;
    s->known = UINT64_MAX;
    for (uint32_t i = 0; i < records->n; i++) {
        const Record *r = &records->at[i];
        queue += queue_change(r);
        if (queue < least) least = queue;
        if (r->kind == RECORD_ARRIVE && r->request < s->known) s->known = r->request;
    }
    s->queue = s->written_queue = -least;
    if (records->n > 0) s->zero = s->queue_at = records->at[0].at;
}

static void write_end(const TraceWriter *s) {
    (void)fputs("\n]", s->f);
    if (s->cut || s->t->lost > 0)
        (void)fprintf(s->f, ",\"otherData\":{\"truncated\":%s,\"lost_records\":%" PRIu64 "}",
                      s->cut ? "true" : "false", s->t->lost);
    (void)fputs("}\n", s->f);
}

Err timeline_write(FILE *f, const Timeline *t, const RecordList *records, Arena *scratch) {
    static const char head[] = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
    size_t            mark = scratch->used;
    TraceWriter      *s = arena_try_new(scratch, TraceWriter, 1);
    if (s == NULL) return err_set(ERR_LIMIT, "no memory to write a trace");
    *s = (TraceWriter){.f = f, .t = t, .first = true, .len = sizeof head};
    find_origin(s, records);
    (void)fputs(head, f);
    Err e = write_events(s, records);
    write_end(s);
    arena_rewind(scratch, mark);
    if (e == ERR_OK && (fflush(f) != 0 || ferror(f) != 0)) e = failed();
    return e;
}
