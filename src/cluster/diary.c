#include "cluster/diary.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[DIARY_KINDS] = {"end", "came", "start", "level", "stop"};

const char *diary_name(DiaryKind k) { return names[k]; }

void diary_open(Diary *d, const ClusterRun *run, uint32_t only, Arena *own) {
    *d = (Diary){.run = run, .arena = own, .only = only};
}

static DiaryEvent *add(Diary *d, DiaryEvent e) {
    if (d->only != DIARY_ALL && d->only != e.job) return NULL;
    if (d->n == d->room) {
        uint32_t    room = d->room > 0 ? 2 * d->room : 256;
        DiaryEvent *at = arena_try_new(d->arena, DiaryEvent, room);
        d->full = d->full || at == NULL;
        if (d->full) return NULL;
        if (d->n > 0) memcpy(at, d->at, d->n * sizeof *at);
        d->at = at;
        d->room = room;
    }
    e.order = d->n;
    d->at[d->n] = e;
    return &d->at[d->n++];
}

static void add_slices(Diary *d, DiaryEvent *e, const ClusterTask *t) {
    ClusterSlice *s = arena_try_new(d->arena, ClusterSlice, t->n_slices);
    d->full = d->full || s == NULL;
    if (s == NULL) return;
    memcpy(s, t->slices, t->n_slices * sizeof *s);
    e->slices = s;
    e->n = t->n_slices;
}

void diary_note(void *self, const ClusterView *v, const ClusterAction *plan, uint32_t n) {
    static const DiaryKind kinds[] = {[CLUSTER_START] = DIARY_START,
                                      [CLUSTER_PREEMPT] = DIARY_STOP,
                                      [CLUSTER_LEVEL] = DIARY_LEVEL};
    Diary                 *d = self;
    for (uint32_t i = 0; i < n; i++) {
        if (plan[i].verb == CLUSTER_WAKE) continue;
        const ClusterTask *t = &v->tasks[plan[i].task];
        DiaryEvent        *e = add(
                   d, (DiaryEvent){.at = v->now, .kind = kinds[plan[i].verb], .job = (uint32_t)t->job.id});
        if (e != NULL && e->kind != DIARY_STOP && t->n_slices > 0) add_slices(d, e, t);
    }
}

// What a plan did stays in its order.
static int compare(const void *a, const void *b) {
    const DiaryEvent *x = a, *y = b;
    DiaryKind         p = x->kind < DIARY_START ? x->kind : DIARY_START;
    DiaryKind         q = y->kind < DIARY_START ? y->kind : DIARY_START;
    if (x->at != y->at) return x->at < y->at ? -1 : 1;
    if (p != q) return p < q ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

Err diary_close(Diary *d, const ClusterResult *r) {
    for (uint32_t i = 0; i < r->n; i++) {
        add(d, (DiaryEvent){.at = d->run->jobs->at[i].submit, .kind = DIARY_CAME, .job = i});
        add(d, (DiaryEvent){.at = r->ends[i].finish, .kind = DIARY_END, .job = i});
    }
    if (d->full) return err_set(ERR_LIMIT, "no memory to keep what happened to %u jobs", r->n);
    if (d->n > 0) qsort(d->at, d->n, sizeof *d->at, compare);
    return ERR_OK;
}

static void write_text(FILE *f, const char *text) {
    fputc('"', f);
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c < 32 || c == '"' || c == '\\')
            fprintf(f, "\\u%04x", c);
        else
            fputc(c, f);
    }
    fputc('"', f);
}

static void write_slice(const Diary *d, const ClusterSlice *s, FILE *f) {
    fputs("{\"server\":", f);
    write_text(f, d->run->servers->at[s->server].name);
    fprintf(f, ",\"gpus\":%u,\"mask\":\"%" PRIx64 "\",\"gpu_milli\":%u,\"cores_milli\":%u,",
            s->gpus, s->mask, s->gpu_milli, s->cores_milli);
    fprintf(f, "\"memory_mib\":%u}", s->memory_mib);
}

void diary_write(const Diary *d, FILE *f) {
    for (uint32_t i = 0; i < d->n; i++) {
        const DiaryEvent *e = &d->at[i];
        fprintf(f, "{\"at\":%" PRId64 ",\"kind\":\"%s\",\"job\":", e->at, names[e->kind]);
        write_text(f, d->run->jobs->at[e->job].id);
        if (e->n > 0) fputs(",\"on\":[", f);
        for (uint32_t k = 0; k < e->n; k++) {
            if (k > 0) fputc(',', f);
            write_slice(d, &e->slices[k], f);
        }
        fputs(e->n > 0 ? "]}\n" : "}\n", f);
    }
}
