#include "kube/kube_recorder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kube/kube_task_field.h"

enum { LINE_BYTES = 64 << 20, FILE_BYTES = 768 << 20 };

typedef struct LastTask {  // as it was written
    ClusterTask   task;
    ClusterSlice *slices;
    uint32_t      set;  // number of its set of servers; CLUSTER_NONE: any
} LastTask;

struct KubeRecorder {
    FILE            *f;
    char            *path;
    Arena            arena;  // of a line
    size_t           written, most;
    bool             full;
    Err              failed;
    LastTask        *tasks;  // [n_slots]
    KubeServer      *servers;
    char           **names;    // [3 * n_servers] of the servers
    char           **tenants;  // [n_tenants]
    uint32_t        *waiting, *running;
    const uint64_t **sets;  // [n_sets] as the picture has them
    uint32_t         n_slots, n_servers, n_tenants, n_waiting, n_running, n_sets, sets_room;
    uint64_t         generation;
};

static void put_text(StrBuf *s, const char *key, const char *value) {
    str_buf_printf(s, ",\"%s\":", key);
    str_buf_json(s, value);
}

static void put_int(StrBuf *s, const char *key, int64_t x) {
    str_buf_printf(s, ",\"%s\":%" PRId64, key, x);
}

static void put_real(StrBuf *s, const char *key, double x) {
    str_buf_printf(s, ",\"%s\":", key);
    str_buf_number(s, x);
}

static void fail(KubeRecorder *r) {
    if (r->failed == ERR_OK)
        r->failed =
            err_set(ERR_IO, "%s: %s; decisions are no longer recorded", r->path, strerror(errno));
    r->full = true;
}

static StrBuf begin(KubeRecorder *r) {
    StrBuf s;
    arena_rewind(&r->arena, 0);
    str_buf_begin(&s, &r->arena, LINE_BYTES);
    return s;
}

static void put_line(KubeRecorder *r, StrBuf *s) {
    static const char last[] = "{\"kind\":\"full\"}\n";
    Str               out;
    str_buf_text(s, "}\n");
    if (r->full) return;
    if (str_buf_end(s, &out) != ERR_OK || out.len > r->most - r->written) {
        out = (Str){last, sizeof last - 1};
        r->full = true;
    }
    if (fwrite(out.at, 1, out.len, r->f) != out.len) fail(r);
    r->written += out.len;
}

static void forget(KubeRecorder *r);

// All is written anew after a header.
void kube_recorder_header(KubeRecorder *r, const KubeRecordHead *h) {
    const KubeRules *x = &h->rules;
    if (r->full) return;
    forget(r);
    StrBuf s = begin(r);
    str_buf_text(&s, "{\"kind\":\"header\",\"version\":1");
    put_text(&s, "policy", h->policy);
    put_text(&s, "scheduler", h->scheduler);
    str_buf_text(&s, ",\"set\":[");
    for (uint32_t i = 0; i < h->n_sets; i++) {
        if (i > 0) str_buf_text(&s, ",");
        str_buf_json(&s, h->sets[i]);
    }
    str_buf_text(&s, "]");
    put_text(&s, "profiles", h->profiles);
    put_text(&s, "quota", h->quota);
    put_text(&s, "weights", h->weights);
    put_int(&s, "min_run", x->stops.min_run);
    put_int(&s, "max_stops", x->stops.max_stops);
    put_int(&s, "restart", x->restart);
    put_int(&s, "restart_wide", x->restart_wide);
    str_buf_printf(&s, ",\"seed\":\"%" PRIx64 "\"", x->seed);
    put_line(r, &s);
}

static bool open_file(KubeRecorder *r, const char *path) {
    r->path = strdup(path);
    r->f = r->path != NULL ? fopen(path, "ae") : NULL;
    if (r->f == NULL || fseek(r->f, 0, SEEK_END) != 0) return false;
    long at = ftell(r->f);
    r->written = at > 0 ? (size_t)at : 0;
    return at >= 0;
}

Err kube_recorder_open(KubeRecorder **out, const char *path, size_t most, const KubeRecordHead *h) {
    KubeRecorder *r = calloc(1, sizeof *r);
    if (r == NULL) return err_set(ERR_LIMIT, "no memory for records");
    Err e = arena_init(&r->arena, LINE_BYTES + (1 << 16));
    if (e == ERR_OK && !open_file(r, path))
        e = err_set(ERR_IO, "cannot write records to %s: %s", path, strerror(errno));
    if (e != ERR_OK) {
        if (r->f != NULL) (void)fclose(r->f);
        free(r->path);
        arena_finish(&r->arena);
        free(r);
        return e;
    }
    r->most = most > 0 ? most : FILE_BYTES;
    r->full = r->written >= r->most;
    kube_recorder_header(r, h);
    *out = r;
    return ERR_OK;
}

static void put_field(StrBuf *s, const KubeTaskField *f, const void *from) {
    uint64_t u64;
    uint32_t u32;
    int32_t  i32;
    double   f64;
    bool     b;
    switch (f->type) {
    case FIELD_U64:
    case FIELD_I64:
        memcpy(&u64, from, sizeof u64);
        str_buf_printf(s, "%" PRId64, (int64_t)u64);
        break;
    case FIELD_U32:
        memcpy(&u32, from, sizeof u32);
        str_buf_int(s, u32);
        break;
    case FIELD_I32:
        memcpy(&i32, from, sizeof i32);
        str_buf_printf(s, "%d", i32);
        break;
    case FIELD_F64:
        memcpy(&f64, from, sizeof f64);
        str_buf_number(s, f64);
        break;
    case FIELD_BOOL:
        memcpy(&b, from, sizeof b);
        str_buf_text(s, b ? "1" : "0");
        break;
    }
}

static void put_slices(StrBuf *s, const ClusterSlice *x, uint32_t n) {
    str_buf_text(s, "[");
    for (uint32_t i = 0; i < n; i++)
        str_buf_printf(s, "%s[%u,\"%" PRIx64 "\",%u,%u,%u,%u]", i > 0 ? "," : "", x[i].server,
                       x[i].mask, x[i].gpus, x[i].gpu_milli, x[i].cores_milli, x[i].memory_mib);
    str_buf_text(s, "]");
}

static bool same_slices(const ClusterTask *a, const ClusterSlice *b, uint32_t n) {
    if (a->n_slices != n) return false;
    for (uint32_t i = 0; i < n; i++) {
        const ClusterSlice *x = &a->slices[i], *y = &b[i];
        if (x->mask != y->mask || x->server != y->server || x->gpus != y->gpus ||
            x->gpu_milli != y->gpu_milli || x->cores_milli != y->cores_milli ||
            x->memory_mib != y->memory_mib)
            return false;
    }
    return true;
}

static bool same_field(const KubeTaskField *f, const ClusterTask *a, const ClusterTask *b) {
    return memcmp((const char *)a + f->offset, (const char *)b + f->offset, f->size) == 0;
}

static bool same_task(const LastTask *last, const ClusterTask *t, uint32_t set) {
    if (last->set != set || !same_slices(t, last->slices, last->task.n_slices)) return false;
    for (uint32_t i = 0; i < KUBE_TASK_FIELDS; i++)
        if (!same_field(&kube_task_fields[i], &last->task, t)) return false;
    return true;
}

static bool keep_task(LastTask *last, const ClusterTask *t, uint32_t set) {
    ClusterSlice *copy = calloc(t->n_slices + 1, sizeof *copy);
    if (copy == NULL) return false;
    if (t->n_slices > 0) memcpy(copy, t->slices, t->n_slices * sizeof *copy);
    free(last->slices);
    *last = (LastTask){.task = *t, .slices = copy, .set = set};
    return true;
}

static void put_task(StrBuf *s, const LastTask *last, const ClusterTask *t, uint32_t slot,
                     uint32_t set) {
    const char *comma = "";
    str_buf_printf(s, "\"%u\":{", slot);
    for (uint32_t i = 0; i < KUBE_TASK_FIELDS; i++) {
        const KubeTaskField *f = &kube_task_fields[i];
        if (same_field(f, &last->task, t)) continue;
        str_buf_printf(s, "%s\"%s\":", comma, f->key);
        put_field(s, f, (const char *)t + f->offset);
        comma = ",";
    }
    if (last->set != set) {
        str_buf_printf(s, "%s\"set\":%d", comma, set == CLUSTER_NONE ? -1 : (int)set);
        comma = ",";
    }
    if (!same_slices(t, last->slices, last->task.n_slices)) {
        str_buf_printf(s, "%s\"slices\":", comma);
        put_slices(s, t->slices, t->n_slices);
    }
    str_buf_text(s, "}");
}

// The number of a set of servers; *fresh: it is a new one.
static uint32_t set_of(KubeRecorder *r, const uint64_t *set, bool *fresh) {
    *fresh = false;
    if (set == NULL) return CLUSTER_NONE;
    for (uint32_t i = r->n_sets; i-- > 0;)
        if (r->sets[i] == set) return i;
    if (r->n_sets == r->sets_room) {
        uint32_t         room = r->sets_room > 0 ? 2 * r->sets_room : 16;
        const uint64_t **more = realloc(r->sets, room * sizeof *more);
        if (more == NULL) {
            fail(r);
            return CLUSTER_NONE;
        }
        r->sets = more;
        r->sets_room = room;
    }
    r->sets[r->n_sets] = set;
    *fresh = true;
    return r->n_sets++;
}

static void put_sets(KubeRecorder *r, StrBuf *s, const KubePicture *p) {
    const char *comma = "";
    if (p->generation != r->generation) {
        r->n_sets = 0;
        for (uint32_t i = 0; i < r->n_slots; i++) r->tasks[i].set = CLUSTER_NONE;
    }
    r->generation = p->generation;
    str_buf_text(s, ",\"sets\":{");
    for (uint32_t i = 0; i < p->n_slots; i++) {
        const ClusterTask *t = &p->tasks[i];
        bool               fresh;
        if (t->state == CLUSTER_GONE) continue;
        uint32_t set = set_of(r, t->job.servers, &fresh);
        if (!fresh) continue;
        str_buf_printf(s, "%s\"%u\":\"", comma, set);
        for (uint32_t w = 0; w < (p->n_servers + 63) / 64; w++)
            str_buf_printf(s, "%s%" PRIx64, w > 0 ? "," : "", t->job.servers[w]);
        str_buf_text(s, "\"");
        comma = ",";
    }
    str_buf_text(s, "}");
}

static bool grow(void **at, uint32_t from, uint32_t to, size_t size) {
    void *more = realloc(*at, (to + (size_t)1) * size);
    if (more == NULL) return false;
    if (to > from) memset((char *)more + from * size, 0, (to - from) * size);
    *at = more;
    return true;
}

static void put_tasks(KubeRecorder *r, StrBuf *s, const KubePicture *p) {
    const char *comma = "";
    for (uint32_t i = p->n_slots; i < r->n_slots; i++) free(r->tasks[i].slices);
    if (p->n_slots != r->n_slots) {
        if (!grow((void **)&r->tasks, r->n_slots, p->n_slots, sizeof *r->tasks)) {
            fail(r);
            return;
        }
        for (uint32_t i = r->n_slots; i < p->n_slots; i++) r->tasks[i].set = CLUSTER_NONE;
        r->n_slots = p->n_slots;
    }
    str_buf_text(s, ",\"tasks\":{");
    for (uint32_t i = 0; i < p->n_slots; i++) {
        const ClusterTask *t = &p->tasks[i];
        bool               fresh = false;
        uint32_t set = t->state == CLUSTER_GONE ? CLUSTER_NONE : set_of(r, t->job.servers, &fresh);
        if (same_task(&r->tasks[i], t, set)) continue;
        str_buf_text(s, comma);
        put_task(s, &r->tasks[i], t, i, set);
        comma = ",";
        if (!keep_task(&r->tasks[i], t, set)) fail(r);
    }
    str_buf_text(s, "}");
}

static bool same_text(const char *a, const char *b) { return a != NULL && strcmp(a, b) == 0; }

static bool keep_text(char **to, const char *text) {
    if (same_text(*to, text)) return true;
    free(*to);
    *to = strdup(text);
    return *to != NULL;
}

static bool same_server(const KubeRecorder *r, uint32_t i, const KubeServer *x) {
    const KubeServer *y = &r->servers[i];
    char *const      *names = &r->names[(size_t)3 * i];
    return y->gpus == x->gpus && y->cores_milli == x->cores_milli &&
           y->memory_mib == x->memory_mib && same_text(names[0], x->name) &&
           same_text(names[1], x->type) && same_text(names[2], x->rack);
}

static void put_servers(KubeRecorder *r, StrBuf *s, const KubePicture *p) {
    const char *comma = "";
    for (uint32_t i = 3 * p->n_servers; i < 3 * r->n_servers; i++) free(r->names[i]);
    if (!grow((void **)&r->servers, r->n_servers, p->n_servers, sizeof *r->servers) ||
        !grow((void **)&r->names, 3 * r->n_servers, 3 * p->n_servers, sizeof *r->names)) {
        fail(r);
        return;
    }
    r->n_servers = p->n_servers;
    str_buf_text(s, ",\"servers\":{");
    for (uint32_t i = 0; i < p->n_servers; i++) {
        const KubeServer *x = &p->servers[i];
        if (same_server(r, i, x)) continue;
        str_buf_printf(s, "%s\"%u\":[", comma, i);
        str_buf_json(s, x->name);
        str_buf_text(s, ",");
        str_buf_json(s, x->type);
        str_buf_text(s, ",");
        str_buf_json(s, x->rack);
        str_buf_printf(s, ",%u,%u,%u]", x->gpus, x->cores_milli, x->memory_mib);
        comma = ",";
        char **names = &r->names[(size_t)3 * i];
        r->servers[i] = *x;
        if (!keep_text(&names[0], x->name) || !keep_text(&names[1], x->type) ||
            !keep_text(&names[2], x->rack))
            fail(r);
    }
    str_buf_text(s, "}");
}

static void put_tenants(KubeRecorder *r, StrBuf *s, const KubePicture *p) {
    const char *comma = "";
    for (uint32_t i = p->n_tenants; i < r->n_tenants; i++) free(r->tenants[i]);
    if (!grow((void **)&r->tenants, r->n_tenants, p->n_tenants, sizeof *r->tenants)) {
        fail(r);
        return;
    }
    r->n_tenants = p->n_tenants;
    str_buf_text(s, ",\"tenants\":{");
    for (uint32_t i = 0; i < p->n_tenants; i++) {
        if (same_text(r->tenants[i], p->tenants[i])) continue;
        str_buf_printf(s, "%s\"%u\":", comma, i);
        str_buf_json(s, p->tenants[i]);
        comma = ",";
        if (!keep_text(&r->tenants[i], p->tenants[i])) fail(r);
    }
    str_buf_text(s, "}");
}

// A list of slots, if it changed.
static void put_slots(KubeRecorder *r, StrBuf *s, const char *key, uint32_t **last, uint32_t *n,
                      const uint32_t *list, uint32_t n_list) {
    if (*last != NULL && *n == n_list &&
        (n_list == 0 || memcmp(*last, list, n_list * sizeof *list) == 0))
        return;
    if (!grow((void **)last, *n, n_list, sizeof **last)) {
        fail(r);
        return;
    }
    if (n_list > 0) memcpy(*last, list, n_list * sizeof *list);
    *n = n_list;
    str_buf_printf(s, ",\"%s\":[", key);
    for (uint32_t i = 0; i < n_list; i++) str_buf_printf(s, "%s%u", i > 0 ? "," : "", list[i]);
    str_buf_text(s, "]");
}

void kube_record_plan(StrBuf *s, const ClusterAction *plan, uint32_t n) {
    static const char *const verbs[] = {"start", "preempt", "resize", "wake"};
    str_buf_text(s, "[");
    for (uint32_t i = 0; i < n; i++) {
        const ClusterAction *a = &plan[i];
        str_buf_printf(s, "%s{\"verb\":\"%s\"", i > 0 ? "," : "", verbs[a->verb]);
        if (a->verb == CLUSTER_WAKE)
            put_int(s, "at", a->at);
        else
            put_int(s, "task", a->task);
        if (a->verb == CLUSTER_START || a->verb == CLUSTER_RESIZE) {
            str_buf_text(s, ",\"slices\":");
            put_slices(s, a->slices, a->n_slices);
        }
        if (a->verb == CLUSTER_RESIZE) put_int(s, "probe", a->probe);
        str_buf_text(s, "}");
    }
    str_buf_text(s, "]");
}

void kube_recorder_decision(KubeRecorder *r, const KubeRecordView *v, const ClusterAction *plan,
                            uint32_t n) {
    const KubePicture *p = v->picture;
    if (r->full) return;
    StrBuf s = begin(r);
    str_buf_text(&s, "{\"kind\":\"decision\"");
    put_int(&s, "at", p->now);
    put_int(&s, "setups", (int64_t)v->setups);
    put_int(&s, "alive", (int64_t)v->alive_ns);
    put_int(&s, "busy", (int64_t)v->busy_ns);
    put_int(&s, "reason", p->reason);
    put_int(&s, "generation", (int64_t)p->generation);
    put_int(&s, "n_servers", p->n_servers);
    put_int(&s, "n_tenants", p->n_tenants);
    put_int(&s, "n_slots", p->n_slots);
    put_int(&s, "fractions", p->fractions);
    put_int(&s, "no_gpus", p->no_gpus);
    put_servers(r, &s, p);
    put_tenants(r, &s, p);
    put_sets(r, &s, p);
    put_tasks(r, &s, p);
    put_slots(r, &s, "waiting", &r->waiting, &r->n_waiting, p->waiting, p->n_waiting);
    put_slots(r, &s, "running", &r->running, &r->n_running, p->running, p->n_running);
    str_buf_text(&s, ",\"plan\":");
    kube_record_plan(&s, plan, n);
    put_line(r, &s);
}

void kube_recorder_outcome(KubeRecorder *r, const KubeRecordOutcome *o) {
    if (r->full) return;
    StrBuf s = begin(r);
    str_buf_text(&s, "{\"kind\":\"outcome\"");
    put_int(&s, "at", o->at);
    put_text(&s, "what", o->what);
    put_text(&s, "namespace", o->namespace_name);
    put_text(&s, "pod", o->pod);
    if (o->node != NULL) put_text(&s, "node", o->node);
    put_text(&s, "result", o->result);
    str_buf_printf(&s, ",\"done\":%s", o->done ? "true" : "false");
    if (o->took > 0) put_real(&s, "took_s", (double)o->took / 1e9);
    put_line(r, &s);
}

void kube_recorder_job(KubeRecorder *r, const KubeRecordJob *j) {
    if (r->full) return;
    StrBuf s = begin(r);
    str_buf_text(&s, "{\"kind\":\"job\"");
    put_text(&s, "namespace", j->namespace_name);
    put_text(&s, "name", j->name);
    put_text(&s, "model", j->model != NULL ? j->model : "");
    put_text(&s, "tenant", j->tenant != NULL ? j->tenant : "");
    put_int(&s, "submit", j->submit);
    put_int(&s, "start", j->start);
    put_int(&s, "end", j->end);
    put_real(&s, "work_s", j->work_s);
    put_int(&s, "gpus", j->gpus);
    put_int(&s, "gpu_milli", j->gpu_milli);
    put_int(&s, "cores_milli", j->cores_milli);
    put_int(&s, "memory_mib", j->memory_mib);
    put_int(&s, "preemptions", j->preemptions);
    put_int(&s, "priority", j->priority);
    put_int(&s, "succeeded", j->succeeded);
    put_line(r, &s);
}

void kube_recorder_flush(KubeRecorder *r) {
    if (fflush(r->f) != 0) fail(r);
}

bool kube_recorder_full(const KubeRecorder *r) { return r->full; }

static void forget(KubeRecorder *r) {
    for (uint32_t i = 0; i < r->n_slots; i++) free(r->tasks[i].slices);
    for (uint32_t i = 0; i < 3 * r->n_servers; i++) free(r->names[i]);
    for (uint32_t i = 0; i < r->n_tenants; i++) free(r->tenants[i]);
    free(r->tasks);
    free(r->servers);
    free(r->names);
    free(r->tenants);
    free(r->waiting);
    free(r->running);
    free(r->sets);
    r->tasks = NULL;
    r->servers = NULL;
    r->names = r->tenants = NULL;
    r->waiting = r->running = NULL;
    r->sets = NULL;
    r->n_slots = r->n_servers = r->n_tenants = r->n_waiting = r->n_running = 0;
    r->n_sets = r->sets_room = 0;
    r->generation = 0;
}

static void free_all(KubeRecorder *r) {
    forget(r);
    free(r->path);
    arena_finish(&r->arena);
    free(r);
}

Err kube_recorder_close(KubeRecorder *r) {
    if (r == NULL) return ERR_OK;
    if (fclose(r->f) != 0) fail(r);
    Err e = r->failed;
    free_all(r);
    return e;
}
