#include "learn/replay.h"

#include "base/err.h"
#include "learn/activation.h"

void sum_tree_init(SumTree *s, Arena *a, uint32_t n) {
    CHECK(n > 0 && n <= (uint32_t)1 << 30);
    s->leaves = 1;
    while (s->leaves < n) s->leaves *= 2;
    s->node = arena_new(a, double, 2 * (size_t)s->leaves);
}

// SumTree are made anew on the way up, so that no error builds up.
void sum_tree_set(SumTree *s, uint32_t i, double value) {
    size_t at = (size_t)s->leaves + i;
    CHECK(i < s->leaves && value >= 0);
    s->node[at] = value;
    while (at > 1) {
        at /= 2;
        s->node[at] = s->node[2 * at] + s->node[2 * at + 1];
    }
}

uint32_t sum_tree_find(const SumTree *s, double at) {
    size_t i = 1;
    CHECK(s->node[1] > 0);
    while (i < s->leaves) {
        double left = s->node[2 * i];
        bool   right = at >= left && s->node[2 * i + 1] > 0;
        i = 2 * i + (right ? 1 : 0);
        if (right) at -= left;
    }
    return (uint32_t)(i - s->leaves);
}

typedef struct ReplayRecord {
    size_t   at;
    uint64_t id;
    uint32_t n;
} ReplayRecord;

struct Replay {
    ReplayOptions o;
    float        *floats;
    size_t        head;     // where the next record goes
    ReplayRecord *records;  // a ring
    uint32_t      oldest, count;
    uint64_t      next_id;
    SumTree       sums;  // of priorities, by place in the ring
    float         most;  // priority so far
};

Replay *replay_create(Arena *a, ReplayOptions o) {
    Replay *r = arena_new(a, Replay, 1);
    CHECK(o.records > 0 && o.floats > 0);
    r->o = o;
    r->floats = arena_alloc(a, o.floats, sizeof(float), 64);
    r->records = arena_new(a, ReplayRecord, o.records);
    r->most = 1;
    if (o.alpha > 0) sum_tree_init(&r->sums, a, o.records);
    return r;
}

static uint32_t place(const Replay *r, uint32_t i) {  // of the i-th oldest
    uint64_t at = (uint64_t)r->oldest + i;
    return (uint32_t)(at < r->o.records ? at : at - r->o.records);
}

static void drop_oldest(Replay *r) {
    if (r->o.alpha > 0) sum_tree_set(&r->sums, r->oldest, 0);
    r->oldest = place(r, 1);
    r->count--;
}

// The oldest records lie behind the head, up to the end; then come those at the beginning.
static void make_room(Replay *r, uint32_t n) {
    if (r->head + n > r->o.floats) {
        while (r->count > 0 && r->records[r->oldest].at >= r->head) drop_oldest(r);
        r->head = 0;
    }
    while (r->count > 0) {
        const ReplayRecord *old = &r->records[r->oldest];
        bool                there = old->at < r->head + n && r->head < old->at + old->n;
        if (!there && r->count < r->o.records) return;
        drop_oldest(r);
    }
}

float *replay_add(Replay *r, uint32_t n) {
    CHECK(n > 0 && n <= r->o.floats);
    make_room(r, n);
    uint32_t at = place(r, r->count);
    r->records[at] = (ReplayRecord){r->head, r->next_id++, n};
    if (r->o.alpha > 0) sum_tree_set(&r->sums, at, (double)r->most);
    r->count++;
    r->head += n;
    return r->floats + r->head - n;
}

uint32_t replay_count(const Replay *r) { return r->count; }

static float power(float x, float exponent) { return repro_exp(exponent * repro_log(x)); }

// Chance times count, so that 1 is an even draw.
static float weight(const Replay *r, uint32_t at) {
    double chance = sum_tree_get(&r->sums, at) / sum_tree_total(&r->sums) * r->count;
    return power((float)chance, -r->o.beta);
}

void replay_draw(const Replay *r, Rng *rng, uint32_t n, ReplayPick *out) {
    float most = 0;
    CHECK(r->count > 0);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at;
        if (r->o.alpha > 0)
            at = sum_tree_find(&r->sums, sum_tree_total(&r->sums) * (i + rng_unit64(rng)) / n);
        else
            at = place(r, (uint32_t)rng_below(rng, r->count));
        const ReplayRecord *k = &r->records[at];
        float               w = r->o.alpha > 0 ? weight(r, at) : 1;
        out[i] = (ReplayPick){r->floats + k->at, k->n, w, k->id};
        most = w > most ? w : most;
    }
    for (uint32_t i = 0; i < n; i++) out[i].weight /= most;
}

void replay_set_error(Replay *r, uint64_t id, float error) {
    uint64_t gone = r->next_id - r->count;
    if (r->o.alpha <= 0 || id < gone || id >= r->next_id) return;
    float size = error > r->o.least ? error : r->o.least;
    float priority = power(size > 1e-6f ? size : 1e-6f, r->o.alpha);
    sum_tree_set(&r->sums, place(r, (uint32_t)(id - gone)), (double)priority);
    if (priority > r->most) r->most = priority;
}

ReplayOptions *replay_options(Replay *r) { return &r->o; }
