#include "node/step_times_store.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"

enum { KEY_BYTES = 64 };

static uint64_t mix_number(uint64_t sum, uint64_t number) {
    for (int shift = 0; shift < 64; shift += 8) sum = hash_fnv_add(sum, number >> shift & 255);
    return sum;
}

static uint64_t mix_text(uint64_t sum, const char *text) {
    return text != NULL ? hash_fnv(sum, text, strlen(text) + 1) : hash_fnv(sum, "", 1);
}

// Hash of all that step times depend on, beside the machine.
static void name_it(const StepTimesStore *s, const Program *p, bool reckoned, char key[KEY_BYTES]) {
    uint64_t sum = hash_fnv(HASH_FNV_START, s->counts, s->n_counts * sizeof *s->counts);
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const Step *t = &p->steps[i];
        sum = mix_text(mix_text(sum, t->kind->name), t->key);
        sum = mix_number(mix_number(sum, t->read_bytes), t->io_bytes);
        sum = mix_number(mix_number(sum, t->const_bytes), (uint64_t)t->macs);
        sum = hash_fnv(sum, t->versions, t->n_versions * sizeof *t->versions);
    }
    (void)snprintf(key, KEY_BYTES, "laps%s %u %016" PRIx64, reckoned ? " reckoned" : "",
                   program_layer_count(p), sum);
}

static uint32_t count_versions(const Program *p) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_steps; i++) n += p->steps[i].n_versions;
    return n;
}

static bool fits(const StepTimesStore *s, const Program *p, const LayerProfile *f) {
    uint32_t at = 0;
    if (f->n_counts != s->n_counts || f->n != count_versions(p)) return false;
    if (memcmp(f->counts, s->counts, s->n_counts * sizeof *s->counts) != 0) return false;
    for (uint32_t i = 0; i < p->n_steps; i++)
        for (uint32_t v = 0; v < p->steps[i].n_versions; v++, at++) {
            if (!version_same(&f->candidates[at].version, &p->steps[i].versions[v])) return false;
            for (uint32_t k = 0; k < f->n_counts; k++)
                if (f->candidates[at].time_ns[k] <= 0) return false;
        }
    return true;
}

static bool take(const StepTimesStore *s, Program *p, const LayerProfile *f, Arena *a,
                 TimeNs *light) {
    uint32_t at = 0;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        Step *t = &p->steps[i];
        for (uint32_t k = 0; t->key == NULL && k < s->n_counts; k++)
            light[i * s->n_counts + k] = f->candidates[at].time_ns[k];
        if (t->key != NULL) {
            LayerProfile *own = arena_try_new(a, LayerProfile, 1);
            if (own == NULL) return false;
            *own = (LayerProfile){
                .n_counts = s->n_counts, .n_kept = t->n_versions, .n = t->n_versions};
            memcpy(own->counts, s->counts, sizeof own->counts);
            for (uint32_t v = 0; v < t->n_versions; v++) own->kept[v] = v;
            own->candidates = &f->candidates[at];
            t->profile = own;
        }
        at += t->n_versions;
    }
    return true;
}

bool step_times_store_get(const StepTimesStore *s, Program *p, Arena *a, TimeNs **light_ns) {
    size_t       mark = a->used;
    char         key[KEY_BYTES];
    LayerProfile f;
    for (uint32_t reckoned = 0; reckoned <= (s->reckoned ? 1 : 0); reckoned++) {
        name_it(s, p, reckoned == 1, key);
        if (!profile_store_get(s->store, key, a, &f) || !fits(s, p, &f)) continue;
        TimeNs *light = arena_try_new(a, TimeNs, (size_t)p->n_steps * s->n_counts);
        if (light == NULL || !take(s, p, &f, a, light)) break;
        *light_ns = light;
        return true;
    }
    arena_rewind(a, mark);
    return false;
}

void step_times_store_put(const StepTimesStore *s, const Program *p, const TimeNs *light_ns,
                          Arena *scratch) {
    size_t       mark = scratch->used;
    uint32_t     n = count_versions(p), at = 0;
    char         key[KEY_BYTES];
    LayerProfile f = {.n_counts = s->n_counts, .n_kept = 1, .finished = true, .n = n};
    if (n > PROFILE_CANDIDATES || n == 0) return;
    memcpy(f.counts, s->counts, sizeof f.counts);
    f.candidates = arena_try_new(scratch, Candidate, n);
    if (f.candidates == NULL) return;
    for (uint32_t i = 0; i < p->n_steps; i++)
        for (uint32_t v = 0; v < p->steps[i].n_versions; v++, at++) {
            const Step *t = &p->steps[i];
            Candidate  *c = &f.candidates[at];
            *c =
                (Candidate){.version = t->versions[v], .tasks = t->kind->tasks(t, &t->versions[v])};
            if (t->key != NULL) *c = t->profile->candidates[t->profile->kept[v]];
            for (uint32_t k = 0; t->key == NULL && k < s->n_counts; k++)
                c->time_ns[k] = light_ns[i * s->n_counts + k];
        }
    name_it(s, p, s->reckoned, key);
    (void)profile_store_put(s->store, key, &f);
    arena_rewind(scratch, mark);
}
