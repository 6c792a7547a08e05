#include "kube/kube_replay.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "kube/kube_picture_read.h"

enum { PLAN_BYTES = 64 << 20, FILE_MOST = 2047 << 20 };

typedef Err Choose(void *self, KubeReplayRun *run, Arena *a);

typedef struct Replay {
    const char       *name;
    Choose           *choose;
    void             *self;
    Arena            *arena;    // of the caller
    Arena             scratch;  // of a line's plan
    KubeReplayRun     run;
    KubePictureRead   picture;
    KubeView          view;
    bool              open;
    uint64_t          setups;  // as recorded
    void             *state;
    const void       *loaded;
    ClusterAction    *actions;
    uint32_t          room;
    KubeReplayCounts *counts;
} Replay;

static Err bad(const Replay *r, const char *what) {
    return err_set(ERR_INVALID, "%s: line %llu: %s", r->name, (unsigned long long)r->counts->lines,
                   what);
}

static const char *text_at(const json_t *o, const char *key) {
    return json_string_value(json_object_get(o, key));
}

static int64_t int_at(const json_t *o, const char *key) {
    return json_integer_value(json_object_get(o, key));
}

static void close_run(Replay *r) {
    if (!r->open) return;
    kube_picture_read_finish(&r->picture);
    kube_view_finish(&r->view);
    r->open = false;
}

static Err copy_text(Replay *r, const json_t *o, const char *key, const char **out) {
    const char *text = text_at(o, key);
    *out = NULL;
    if (text == NULL) return ERR_OK;
    size_t len = strlen(text) + 1;
    char  *copy = arena_try(r->arena, len, 1, 1);
    if (copy == NULL) return err_set(ERR_LIMIT, "%s: no memory for a header", r->name);
    memcpy(copy, text, len);
    *out = copy;
    return ERR_OK;
}

static Err read_sets(Replay *r, const json_t *o, KubeRecordHead *h) {
    const json_t *list = json_object_get(o, "set");
    size_t        n = json_array_size(list);
    const char  **sets = n < 1024 ? arena_try_new(r->arena, const char *, n + 1) : NULL;
    if (sets == NULL) return bad(r, "too many settings");
    for (size_t i = 0; i < n; i++) {
        json_t *row = json_pack("{s:O}", "t", json_array_get(list, i));
        Err     e = copy_text(r, row, "t", &sets[i]);
        json_decref(row);
        TRY(e);
        if (sets[i] == NULL) return bad(r, "a setting is no text");
    }
    h->sets = sets;
    h->n_sets = (uint32_t)n;
    return ERR_OK;
}

static Err read_header(Replay *r, const json_t *o) {
    KubeRecordHead *h = &r->run.head;
    const char     *seed = text_at(o, "seed");
    if (int_at(o, "version") != 1) return bad(r, "records of another version");
    r->run = (KubeReplayRun){.policy = NULL};
    TRY(copy_text(r, o, "policy", &h->policy));
    TRY(copy_text(r, o, "scheduler", &h->scheduler));
    TRY(copy_text(r, o, "profiles", &h->profiles));
    TRY(copy_text(r, o, "quota", &h->quota));
    TRY(copy_text(r, o, "weights", &h->weights));
    TRY(read_sets(r, o, h));
    if (h->policy == NULL || seed == NULL) return bad(r, "a header without policy or seed");
    int64_t stops = int_at(o, "max_stops");
    h->rules =
        (KubeRules){.stops = {.min_run = int_at(o, "min_run"),
                              .max_stops = stops >= 0 && stops <= UINT32_MAX ? (uint32_t)stops : 0},
                    .restart = int_at(o, "restart"),
                    .restart_wide = int_at(o, "restart_wide"),
                    .seed = strtoull(seed, NULL, 16)};
    close_run(r);
    TRY(r->choose(r->self, &r->run, r->arena));
    h->rules.shares = r->run.shares;
    kube_picture_read_init(&r->picture, r->run.profiles != NULL ? r->run.profiles->n : 0);
    kube_view_init(&r->view);
    r->open = true;
    r->setups = 0;
    r->counts->headers++;
    return ERR_OK;
}

static Err open_policy(Replay *r) {
    const ClusterPolicy *p = r->run.policy;
    const ClusterSetup  *s = &r->view.setup;
    Arena               *a = &r->view.arena;
    r->state = NULL;
    r->loaded = NULL;
    if (s->gpus == 0) return bad(r, "a decision of a policy on a cluster without GPUs");
    if (p->load != NULL) TRY(p->load(s, r->run.settings, a, &r->loaded));
    if (p->state_size != NULL) {
        r->state = arena_try(a, p->state_size(s, r->run.settings), 1, 64);
        if (r->state == NULL) return bad(r, "no memory for the policy");
    }
    if (p->init != NULL) p->init(r->state, s, r->run.settings, r->loaded);
    uint32_t most = 3 * s->n_slots + 2;
    if (most <= r->room) return ERR_OK;
    ClusterAction *more = realloc(r->actions, most * sizeof *more);
    if (more == NULL) return bad(r, "no memory for plans");
    r->actions = more;
    r->room = most;
    return ERR_OK;
}

static Err compare(Replay *r, const char *recorded, size_t len, uint32_t n) {
    StrBuf s;
    Str    again;
    arena_rewind(&r->scratch, 0);
    str_buf_begin(&s, &r->scratch, PLAN_BYTES);
    kube_record_plan(&s, r->actions, n);
    TRY(str_buf_end(&s, &again));
    if (again.len == len && memcmp(again.at, recorded, len) == 0) {
        r->counts->same++;
    } else if (r->counts->first == 0) {
        r->counts->first = r->counts->lines;
        r->counts->recorded =
            arena_printf(r->arena, "%.*s", (int)(len < 4000 ? len : 4000), recorded);
        r->counts->again =
            arena_printf(r->arena, "%.*s", (int)(again.len < 4000 ? again.len : 4000), again.at);
    }
    return ERR_OK;
}

// The text of the plan: the last member of the line.
static const char *plan_of(const char *line, size_t len, size_t *out) {
    static const char key[] = ",\"plan\":";
    const char       *at = NULL;
    for (const char *from = line;;) {
        const char *hit = memmem(from, len - (size_t)(from - line), key, sizeof key - 1);
        if (hit == NULL) break;
        at = hit + sizeof key - 1;
        from = at;
    }
    if (at == NULL || line[len - 1] != '}') return NULL;
    *out = len - 1 - (size_t)(at - line);
    return at;
}

static Err read_decision(Replay *r, const json_t *o, const char *line, size_t len) {
    KubePicture p;
    bool        anew;
    size_t      n_plan;
    const char *plan = plan_of(line, len, &n_plan);
    if (!r->open || plan == NULL) return bad(r, "a decision without a header or a plan");
    Err e = kube_picture_read(&r->picture, o, &p);
    if (e != ERR_OK)
        return err_add(e, "%s: line %llu", r->name, (unsigned long long)r->counts->lines);
    p.profiles = r->run.profiles;
    // Setups that no decision was recorded of count too: the policy began anew with each.
    uint64_t setups = (uint64_t)int_at(o, "setups");
    if (setups != r->setups) r->view.generation = p.generation + 1;
    r->setups = setups;
    TRY(kube_view_build(&r->view, &p, &r->run.head.rules, &anew));
    if (anew) TRY(open_policy(r));
    r->view.view.alive_ns = (uint64_t)int_at(o, "alive");
    r->view.view.busy_ns = (uint64_t)int_at(o, "busy");
    uint32_t n = r->run.policy->decide(r->state, &r->view.view, r->actions, r->room);
    if (r->counts->decisions++ == 0) r->counts->from = p.now;
    r->counts->to = p.now;
    return compare(r, plan, n_plan, n);
}

static Err read_kind(Replay *r, const json_t *o, const char *line, size_t len) {
    const char *kind = text_at(o, "kind");
    if (kind == NULL) return bad(r, "a line without its kind");
    if (strcmp(kind, "header") == 0) return read_header(r, o);
    if (strcmp(kind, "decision") == 0) return read_decision(r, o, line, len);
    r->counts->outcomes += strcmp(kind, "outcome") == 0;
    r->counts->jobs += strcmp(kind, "job") == 0;
    r->counts->full |= strcmp(kind, "full") == 0;
    return ERR_OK;
}

static Err read_line(Replay *r, const char *line, size_t len, bool ended) {
    json_t *o = NULL;
    r->counts->lines++;
    if (!ended) {
        r->counts->cut = true;
        return ERR_OK;
    }
    if (len == 0) return ERR_OK;
    Err e = json_parse(r->name, line, len, &o);
    if (e != ERR_OK) return err_add(e, "line %llu", (unsigned long long)r->counts->lines);
    e = read_kind(r, o, line, len);
    json_decref(o);
    return e;
}

static Err read_all(Replay *r, const char *text, size_t len) {
    for (size_t at = 0; at < len;) {
        const char *end = memchr(text + at, '\n', len - at);
        size_t      n = end != NULL ? (size_t)(end - text) - at : len - at;
        TRY(read_line(r, text + at, n, end != NULL));
        at += n + 1;
    }
    if (r->counts->headers > 0) return ERR_OK;
    return err_set(ERR_INVALID, "%s has no header of a scheduler's records", r->name);
}

Err kube_replay_text(const char *name, const char *text, size_t len, Choose *choose, void *self,
                     Arena *a, KubeReplayCounts *out) {
    Replay r = {.name = name, .choose = choose, .self = self, .arena = a, .counts = out};
    *out = (KubeReplayCounts){.lines = 0};
    TRY(arena_init(&r.scratch, PLAN_BYTES + (1 << 16)));
    Err e = read_all(&r, text, len);
    close_run(&r);
    free(r.actions);
    arena_finish(&r.scratch);
    return e;
}

typedef struct Visit {
    Choose           *choose;
    void             *self;
    Arena            *arena;
    KubeReplayCounts *out;
} Visit;

static Err visit(void *ctx, const char *path, char *text, size_t len) {
    Visit *v = ctx;
    return kube_replay_text(path, text, len, v->choose, v->self, v->arena, v->out);
}

Err kube_replay(const char *path, Choose *choose, void *self, Arena *a, KubeReplayCounts *out) {
    Visit v = {choose, self, a, out};
    return file_visit(path, FILE_MOST, visit, &v);
}
