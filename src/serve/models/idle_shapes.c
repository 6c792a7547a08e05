// Idle shapes: what is compiled for shapes that requests brought stays for the next requests, but
// those of all models that no request has used for some time hold at most a part of the memory of
// requests. Otherwise requests of many shapes would keep that memory from all others for good.
#include "serve/models/registry_int.h"

enum { IDLE_PART = 8 };  // of the memory of all requests

#define IDLE_NS  INT64_C(5000000000)
#define SWEEP_NS INT64_C(500000000)

typedef struct IdleShapes {
    uint64_t       bytes;
    CompiledShape *oldest;
    bool           any;  // there is a shape to look at again
} IdleShapes;

static void look_at(IdleShapes *s, CompiledShape *cs, TimeNs now) {
    if (cs->state != COMPILED_SHAPE_READY || cs->charged == 0) return;
    s->any = true;
    if (cs->running > 0 || cs->used_at + IDLE_NS > now) return;
    s->bytes += cs->charged;
    if (s->oldest == NULL || cs->used < s->oldest->used) s->oldest = cs;
}

static IdleShapes look_at_all(const ModelRegistry *r, TimeNs now) {
    IdleShapes s = {0};
    for (uint32_t i = 0; i < r->n_listed; i++) {
        ModelVersion *mv = r->listed[i];
        if (mv->loading || mv->leaving) continue;  // the loader's thread has its shapes
        for (uint32_t k = 0; k < mv->n_shapes; k++) look_at(&s, &mv->shapes[k], now);
    }
    return s;
}

static void sweep(void *self) {
    ModelRegistry *r = self;
    const Budget  *b = r->o.memory;
    IdleShapes     s = look_at_all(r, loop_now(r->o.loop));
    if (s.bytes > b->most / IDLE_PART) compiled_shape_drop(s.oldest);
    if (s.any) idle_shapes_watch(r);
}

void idle_shapes_watch(ModelRegistry *r) {
    if (r->o.memory == NULL || r->o.memory->most == 0 || r->sweep.place != 0) return;
    r->sweep.fire = sweep;
    r->sweep.self = r;
    Err e = loop_arm(r->o.loop, &r->sweep, loop_now(r->o.loop) + SWEEP_NS);
    (void)e;  // no memory for a timer: the next shape tries again
}
