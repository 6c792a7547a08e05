#include "net/slab.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/poison.h"

// A slab has a power of two of bytes; its first 64 hold the record. Large ones are mapped, so that
// freeing returns them to the system.
enum { SLAB_LEAST = 12, SLAB_MAPPED = 18, SLAB_RECORD = 64, SLAB_KEPT = 64 };

static const size_t SLAB_SPARE = (size_t)64 << 20;

static uint32_t slab_class(size_t size) {
    uint32_t class = SLAB_LEAST;
    while (class < SLAB_CLASSES && ((size_t)1 << class) - SLAB_RECORD < size) class ++;
    return class;
}

static uint32_t slab_class_of(const Slab *s) {
    return (uint32_t)__builtin_ctzl(s->size + SLAB_RECORD);
}

static Slab *slab_new(uint32_t class) {
    size_t bytes = (size_t)1 << class;
    void  *memory = NULL;
    if (class < SLAB_MAPPED)
        memory = aligned_alloc(64, bytes);
    else
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!memory || memory == MAP_FAILED) return NULL;
    Slab *s = memory;
    *s = (Slab){.at = (unsigned char *)memory + SLAB_RECORD, .size = bytes - SLAB_RECORD};
    return s;
}

static void slab_free(Slab *s) {
    if (slab_class_of(s) < SLAB_MAPPED)
        free(s);
    else
        munmap(s, s->size + SLAB_RECORD);
}

static Slab *slab_pop(SlabPool *p, uint32_t class) {
    Slab *s = p->free[class];
    p->free[class] = s->next;
    if (--p->n_free[class] < p->least[class]) p->least[class] = p->n_free[class];
    p->spare -= s->warm;
    return s;
}

Slab *slab_take(SlabPool *p, size_t size) {
    uint32_t class = slab_class(size);
    if (class >= SLAB_CLASSES || p->held >= p->most) return NULL;
    Slab *s = NULL;
    if (p->free[class]) s = slab_pop(p, class);
    if (s && s->warm > p->most - p->held) {  // a new slab counts as much as is touched of it
        slab_free(s);
        s = NULL;
    }
    if (!s) s = slab_new(class);
    if (s) p->held += s->warm;
    return s;
}

bool slab_touch(SlabPool *p, Slab *s, size_t used) {
    if (used <= s->warm) return true;
    if (used - s->warm > p->most - p->held) return false;
    p->held += used - s->warm;
    s->warm = used;
    return true;
}

// mremap moves pages without copying.
static Slab *slab_stretch(Slab *s, uint32_t class) {
    size_t bytes = (size_t)1 << class;
    void  *memory = mremap(s, s->size + SLAB_RECORD, bytes, MREMAP_MAYMOVE);
    if (memory == MAP_FAILED) return NULL;
    s = memory;
    s->at = (unsigned char *)memory + SLAB_RECORD;
    s->size = bytes - SLAB_RECORD;
    return s;
}

Slab *slab_grow(SlabPool *p, Slab *s, size_t used, size_t size) {
    if (slab_class(size) >= SLAB_CLASSES) return NULL;
    if (slab_class_of(s) >= SLAB_MAPPED) return slab_stretch(s, slab_class(size));
    Slab *more = slab_take(p, size);
    if (!more) return NULL;
    if (!slab_touch(p, more, used)) {
        slab_give(p, more);
        return NULL;
    }
    memcpy(more->at, s->at, used);
    slab_give(p, s);
    return more;
}

void slab_give(SlabPool *p, Slab *s) {
    if (!s) return;
    p->held -= s->warm;
    poison_fill(s->at, s->warm);
    uint32_t class = slab_class_of(s);
    if (p->n_free[class] >= SLAB_KEPT || p->spare + s->warm > SLAB_SPARE) {
        slab_free(s);
        return;
    }
    p->spare += s->warm;
    p->n_free[class]++;
    s->next = p->free[class];
    p->free[class] = s;
}

void slab_trim(SlabPool *p) {
    for (uint32_t class = SLAB_LEAST; class < SLAB_CLASSES; class ++) {
        for (uint32_t n = p->least[class]; n > 0; n--) slab_free(slab_pop(p, class));
        p->least[class] = p->n_free[class];
    }
}

SlabPool *slab_pool_new(size_t most) {
    SlabPool *p = calloc(1, sizeof *p);
    if (p) p->most = most;
    return p;
}

void slab_pool_close(SlabPool *p) {
    if (!p) return;
    for (uint32_t class = SLAB_LEAST; class < SLAB_CLASSES; class ++)
        while (p->free[class]) slab_free(slab_pop(p, class));
    p->closed = true;
    if (p->n_lent == 0) free(p);
}

static void slab_return(ExchangeBody *b) {
    Slab     *s = (Slab *)((char *)b - offsetof(Slab, lent));
    SlabPool *p = s->pool;
    p->n_lent--;
    slab_give(p, s);
    if (p->closed) slab_pool_close(p);
}

ExchangeBody *slab_lend(SlabPool *p, Slab *s) {
    p->n_lent++;
    s->pool = p;
    s->lent.give = slab_return;
    return &s->lent;
}
