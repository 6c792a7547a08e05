#include "serve/observe/engine_trace.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/thread.h"
#include "report/timeline.h"

enum { SCRATCH_BYTES = 8 << 20, LEAST_BYTES = 64 << 10 };
static const TimeNs step_ns = 50000000;

struct EngineTrace {
    EngineTraceOptions o;
    Arena              arena;  // of this struct, records and scratch
    Arena              page;   // of the document
    RecordList         records;
    uint64_t           lost, lost_before;
    TimeNs             until;
    LoopTimer          timer;
    LoopPost           post;
    pthread_t          writer;
    bool         recording, writing, posted, destroyed;  // destroyed: freed when its post arrives
    _Atomic bool stop;
    const char **names;  // [n_names] copied when the recording ended
    size_t       len;
    Err          result;
    char         why[256];
};

static void collect(void *self, const Record *r) {
    EngineTrace *t = self;
    if (t->records.n == t->records.room) {
        t->lost++;
        return;
    }
    t->records.at[t->records.n] = *r;
    t->records.at[t->records.n].versions =
        t->records.n;  // not shown in the document: used as a sequence number
    t->records.n++;
}

static void drop(void *self, const Record *r) { (void)self, (void)r; }

static void fail(EngineTrace *t, Err e) {
    t->result = e;
    (void)snprintf(t->why, sizeof t->why, "%s", err_why());
}

static ssize_t write_page(void *self, const char *bytes, size_t n) {
    EngineTrace *t = self;
    char        *to = atomic_load(&t->stop) ? NULL : arena_try(&t->page, n, 1, 1);
    if (to == NULL) return 0;
    memcpy(to, bytes, n);
    t->len += n;
    return (ssize_t)n;
}

// Records are ordered by time only within a step.
static int earlier(const void *x, const void *y) {
    const Record *a = x, *b = y;
    if (a->at != b->at) return a->at < b->at ? -1 : 1;
    return a->versions < b->versions ? -1 : a->versions > b->versions;
}

static Err write_text(EngineTrace *t) {
    Timeline line = {.title = "cotenant",
                     .tenants = t->names,
                     .n_tenants = t->o.n_names,
                     .n_cores = node_live_cores(t->o.engine),
                     .requests = true,
                     .most = t->o.most,
                     .lost = t->lost};
    FILE    *f = fopencookie(t, "w", (cookie_io_functions_t){.write = write_page});
    if (f == NULL) return err_set(ERR_LIMIT, "out of memory for a trace");
    qsort(t->records.at, t->records.n, sizeof *t->records.at, earlier);
    Err e = timeline_write(f, &line, &t->records, &t->arena);
    return fclose(f) == 0 || e != ERR_OK ? e : err_set(ERR_LIMIT, "out of memory for a trace");
}

static void *serve(void *self) {
    EngineTrace *t = self;
    (void)setpriority(PRIO_PROCESS, 0, 10);  // of this thread, below the workers
    Err e = write_text(t);
    if (e != ERR_OK) fail(t, e);
    loop_post(t->o.loop, &t->post);
    return NULL;
}

static void release(EngineTrace *t) {
    Arena a = t->arena;
    arena_finish(&t->page);
    arena_finish(&a);
}

static void join(EngineTrace *t) {
    if (t->writing) (void)pthread_join(t->writer, NULL);
    t->writing = false;
}

static void notify(void *self) {
    EngineTrace *t = self;
    join(t);
    t->posted = false;
    if (t->destroyed)
        release(t);
    else
        t->o.done(t->o.self, t);
}

static void end(EngineTrace *t) {
    loop_disarm(t->o.loop, &t->timer);
    node_live_record(t->o.engine, false);
    t->recording = false;
    t->lost += node_live_lost(t->o.engine) - t->lost_before;
    for (uint32_t i = 0; i < t->o.n_names; i++) t->names[i] = t->o.names[i];
    t->posted = true;
    t->writing = t->result == ERR_OK;
    Err e = t->writing ? thread_start(&t->writer, "trace", serve, t) : ERR_OK;
    if (e != ERR_OK) {
        t->writing = false;
        fail(t, e);
    }
    if (!t->writing) loop_post(t->o.loop, &t->post);
}

static void step(void *self) {
    EngineTrace *t = self;
    Err          e = node_live_records(t->o.engine, &t->arena, (RecordSink){collect, t});
    TimeNs       now = clock_monotonic_ns(), next = now + step_ns;
    bool         over = now >= t->until || t->records.n == t->records.room || e != ERR_OK;
    if (e == ERR_OK && !over) e = loop_arm(t->o.loop, &t->timer, next < t->until ? next : t->until);
    if (e != ERR_OK) fail(t, e);
    if (over || e != ERR_OK) end(t);
}

static Err prepare(EngineTrace **out, const EngineTraceOptions *o) {
    Arena  a = {0};
    size_t text = o->most > LEAST_BYTES ? o->most : LEAST_BYTES;
    size_t room = text / 2 / sizeof(Record);
    size_t names = (o->n_names + 1) * sizeof(char *);
    if (room > UINT32_MAX) room = UINT32_MAX;
    TRY(arena_init(&a, sizeof(EngineTrace) + room * sizeof(Record) + names + SCRATCH_BYTES));
    EngineTrace *t = arena_new(&a, EngineTrace, 1);
    t->o = *o;
    t->o.most = text;
    t->records = (RecordList){.at = arena_new(&a, Record, room), .room = (uint32_t)room};
    t->names = arena_new(&a, const char *, o->n_names + 1);
    Err e = arena_init(&t->page, text + BUFSIZ);
    t->arena = a;
    if (e != ERR_OK)
        arena_finish(&a);
    else
        *out = t;
    return e;
}

Err engine_trace_start(EngineTrace **out, const EngineTraceOptions *o) {
    EngineTrace *t = NULL;
    TRY(prepare(&t, o));
    t->timer = (LoopTimer){.fire = step, .self = t};
    t->post = (LoopPost){.run = notify, .self = t};
    TimeNs now = clock_monotonic_ns();
    t->until = now + o->span;
    t->lost_before = node_live_lost(o->engine);
    Err e = node_live_records(o->engine, &t->arena, (RecordSink){drop, NULL});
    if (e == ERR_OK) e = loop_arm(o->loop, &t->timer, o->span < step_ns ? t->until : now + step_ns);
    if (e != ERR_OK) {
        engine_trace_destroy(t);
        return e;
    }
    t->recording = true;
    node_live_record(o->engine, true);
    *out = t;
    return ERR_OK;
}

void engine_trace_stop(EngineTrace *t) {
    if (!t->recording) return;
    t->until = 0;
    loop_disarm(t->o.loop, &t->timer);
    step(t);
}

Err engine_trace_text(const EngineTrace *t, Str *out) {
    if (t->result != ERR_OK) return err_set(t->result, "%s", t->why);
    *out = (Str){t->page.base, t->len};
    return ERR_OK;
}

void engine_trace_destroy(EngineTrace *t) {
    if (t == NULL) return;
    if (t->recording) node_live_record(t->o.engine, false);
    loop_disarm(t->o.loop, &t->timer);
    atomic_store(&t->stop, true);
    join(t);
    t->destroyed = true;
    if (!t->posted) release(t);
}
