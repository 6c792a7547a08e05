#include "compile/packed_weights.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/tensor.h"

enum { FIRST_BYTES = 1 << 28 };          // of address space
enum { HUGE_PAGE_MIN_BYTES = 4 << 20 };  // as in a program of its own weights

static const size_t MOST_BYTES = (size_t)1 << 37;

struct PackEntry {
    PackEntry *next;
    PackKey    key;
    uint64_t   hash;
    size_t     bytes;
    void      *data;
};

Err packed_weights_create(PackedWeights **out, const Arena *model) {
    PackedWeights *p = calloc(1, sizeof *p);
    if (p == NULL) return err_set(ERR_LIMIT, "no memory for packed weights");
    Err e = arena_init_growing(&p->arena, FIRST_BYTES, MOST_BYTES);
    if (e != ERR_OK) {
        free(p);
        return e;
    }
    arena_use_huge_pages(&p->arena, HUGE_PAGE_MIN_BYTES);
    CHECK(pthread_mutex_init(&p->lock, NULL) == 0);
    p->model = model;
    *out = p;
    return ERR_OK;
}

void packed_weights_destroy(PackedWeights *p) {
    if (p == NULL) return;
    CHECK(pthread_mutex_destroy(&p->lock) == 0);
    arena_finish(&p->arena);
    free(p);
}

bool packed_weights_shares(const PackedWeights *p, const void *source) {
    return p != NULL && source != NULL && arena_holds(p->model, source, 1);
}

bool packed_weights_in_place(const PackedWeights *p, const void *source, size_t bytes,
                             size_t slack) {
    return p != NULL && source != NULL && arena_holds(p->model, source, bytes + slack);
}

static uint64_t hash_of(const PackKey *k) {
    uint64_t sum = hash_fnv(HASH_FNV_START, k->form, strlen(k->form));
    for (uint32_t i = 0; i < PACK_SOURCES; i++) sum = hash_fnv_add(sum, (uintptr_t)k->sources[i]);
    for (uint32_t i = 0; i < PACK_SIZES; i++) sum = hash_fnv_add(sum, k->sizes[i]);
    return sum ^ sum >> 29;
}

static bool same_factors(const PackFactors *a, const PackFactors *b) {
    if (a->at == NULL || b->at == NULL) return a->at == b->at;
    return a->n == b->n && memcmp(a->at, b->at, a->n * sizeof *a->at) == 0;
}

static bool same_key(const PackKey *a, const PackKey *b) {
    return memcmp(a->sources, b->sources, sizeof a->sources) == 0 &&
           strcmp(a->form, b->form) == 0 && memcmp(a->sizes, b->sizes, sizeof a->sizes) == 0 &&
           memcmp(&a->alpha, &b->alpha, sizeof a->alpha) == 0 &&
           same_factors(&a->factors[0], &b->factors[0]) &&
           same_factors(&a->factors[1], &b->factors[1]);
}

static bool keep_factors(PackedWeights *p, PackFactors *f) {
    if (f->at == NULL) return true;
    float *own = arena_try_new(&p->arena, float, f->n);
    if (own == NULL) return false;
    memcpy(own, f->at, f->n * sizeof *own);
    f->at = own;
    return true;
}

static PackEntry *add(PackedWeights *p, const PackKey *key, size_t bytes) {
    PackEntry *e = arena_try_new(&p->arena, PackEntry, 1);
    if (e == NULL) return NULL;
    e->key = *key;
    e->hash = hash_of(key);
    e->bytes = bytes;
    e->data = arena_try(&p->arena, bytes, 1, TENSOR_ALIGN);
    if (e->data == NULL || !keep_factors(p, &e->key.factors[0]) ||
        !keep_factors(p, &e->key.factors[1]))
        return NULL;
    PackEntry **chain = &p->chains[e->hash % PACK_CHAINS];
    e->next = *chain;
    *chain = e;
    p->n++;
    return e;
}

Err packed_weights_find(PackedWeights *p, const PackKey *key, size_t bytes, void **out,
                        bool *made) {
    uint64_t hash = hash_of(key);
    CHECK(pthread_mutex_lock(&p->lock) == 0);
    PackEntry *e = p->chains[hash % PACK_CHAINS];
    while (e != NULL && (e->hash != hash || e->bytes != bytes || !same_key(&e->key, key)))
        e = e->next;
    *made = e != NULL;
    if (e == NULL) e = add(p, key, bytes);
    if (*made || e == NULL) packed_weights_made(p);
    if (e == NULL) return err_set(ERR_LIMIT, "no memory for %zu bytes of packed weights", bytes);
    *out = e->data;
    return ERR_OK;
}

void packed_weights_made(PackedWeights *p) { CHECK(pthread_mutex_unlock(&p->lock) == 0); }

size_t packed_weights_bytes(PackedWeights *p) {
    if (p == NULL) return 0;
    CHECK(pthread_mutex_lock(&p->lock) == 0);
    size_t bytes = arena_in_use(&p->arena);
    CHECK(pthread_mutex_unlock(&p->lock) == 0);
    return bytes;
}
