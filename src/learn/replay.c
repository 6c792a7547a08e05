#include "learn/replay.h"

#include <stdbool.h>

typedef struct ReplayRecord {
    size_t   at;
    uint64_t id;
    uint32_t n;
} ReplayRecord;

struct Replay {
    ReplayOptions o;
    float        *floats;
    size_t        head;     // position of the next record
    ReplayRecord *records;  // ring
    uint32_t      oldest, count;
    uint64_t      next_id;
};

Replay *replay_create(Arena *a, ReplayOptions o) {
    Replay *r = arena_new(a, Replay, 1);
    CHECK(o.records > 0 && o.floats > 0);
    r->o = o;
    r->floats = arena_alloc(a, o.floats, sizeof(float), 64);
    r->records = arena_new(a, ReplayRecord, o.records);
    return r;
}

static uint32_t ring_index(const Replay *r, uint32_t i) {  // of the i-th oldest
    uint64_t at = (uint64_t)r->oldest + i;
    return (uint32_t)(at < r->o.records ? at : at - r->o.records);
}

static void drop_oldest(Replay *r) {
    r->oldest = ring_index(r, 1);
    r->count--;
}

// Records from head to the end of the buffer are the oldest, then those at its start.
static void make_room(Replay *r, uint32_t n) {
    if (r->head + n > r->o.floats) {
        while (r->count > 0 && r->records[r->oldest].at >= r->head) drop_oldest(r);
        r->head = 0;
    }
    while (r->count > 0) {
        const ReplayRecord *old = &r->records[r->oldest];
        bool                overlaps = old->at < r->head + n && r->head < old->at + old->n;
        if (!overlaps && r->count < r->o.records) return;
        drop_oldest(r);
    }
}

float *replay_add(Replay *r, uint32_t n) {
    CHECK(n > 0 && n <= r->o.floats);
    make_room(r, n);
    r->records[ring_index(r, r->count)] = (ReplayRecord){r->head, r->next_id++, n};
    r->count++;
    r->head += n;
    return r->floats + r->head - n;
}

uint32_t replay_count(const Replay *r) { return r->count; }

void replay_draw(const Replay *r, Rng *rng, uint32_t n, ReplayPick *out) {
    CHECK(r->count > 0);
    for (uint32_t i = 0; i < n; i++) {
        const ReplayRecord *k = &r->records[ring_index(r, (uint32_t)rng_below(rng, r->count))];
        out[i] = (ReplayPick){r->floats + k->at, k->n, k->id};
    }
}
