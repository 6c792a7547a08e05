#include "net/slab.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/poison.h"

// A slab has a power of two of bytes; its first 64 hold the record. Large ones are mapped, so that
// freeing returns them to the system.
enum { SLAB_LEAST = 12, SLAB_MAPPED = 18, SLAB_RECORD = 64, SLAB_KEPT = 64, SLAB_PIECE = 1 << 20 };

// Bytes of free slabs that are kept in any case, and the part of the memory that they may use.
static const size_t SLAB_SPARE = (size_t)64 << 20, SLAB_SPARE_PARTS = 4;

static uint32_t slab_class(size_t size) {
    uint32_t class = SLAB_LEAST;
    while (class < SLAB_CLASSES && ((size_t)1 << class) - SLAB_RECORD < size) class ++;
    return class;
}

static uint32_t slab_class_of(const Slab *s) {
    return (uint32_t)__builtin_ctzl(s->size + SLAB_RECORD);
}

// Small slabs are charged to the whole memory, large ones to all of it but a reserve.
static Budget *slab_payer(SlabPool *p, uint32_t class) {
    return class < SLAB_MAPPED && p->small.whole ? &p->small : &p->budget;
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

// Unmapping a large one takes milliseconds: it leaves in pieces, and counts until it has left.
static void slab_free(SlabPool *p, Slab *s) {
    if (slab_class_of(s) < SLAB_MAPPED) {
        free(s);
    } else if (s->warm <= SLAB_PIECE) {
        munmap(s, s->size + SLAB_RECORD);
    } else {
        budget_add(&p->budget, s->warm);
        s->next = p->leaving;
        p->leaving = s;
    }
}

bool slab_sweep(SlabPool *p) {
    Slab *s = p->leaving;
    if (!s) return false;
    size_t bytes = s->size + SLAB_RECORD, used = s->warm + SLAB_RECORD;
    size_t keep = (used - 1) / SLAB_PIECE * SLAB_PIECE;
    budget_give(&p->budget, s->warm - (keep > 0 ? keep - SLAB_RECORD : 0));
    if (keep == 0) p->leaving = s->next;
    (void)munmap((char *)s + keep, bytes - keep);
    if (keep > 0) s->size = s->warm = keep - SLAB_RECORD;
    return p->leaving != NULL;
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
    if (class >= SLAB_CLASSES || budget_short(slab_payer(p, class), 1)) return NULL;
    Slab *s = NULL;
    if (p->free[class]) s = slab_pop(p, class);
    if (s && !budget_take(slab_payer(p, class),
                          s->warm)) {  // a new one counts as much as is touched of it
        slab_free(p, s);
        s = NULL;
    }
    return s ? s : slab_new(class);
}

bool slab_touch(SlabPool *p, Slab *s, size_t used) {
    if (used <= s->warm) return true;
    if (!budget_take(slab_payer(p, slab_class_of(s)), used - s->warm)) return false;
    s->warm = used;
    return true;
}

Slab *slab_need(SlabPool *p, size_t size) {
    uint32_t class = slab_class(size);
    if (class >= SLAB_CLASSES) return NULL;
    Slab *s = p->free[class] ? slab_pop(p, class) : slab_new(class);
    if (s) budget_add(slab_payer(p, class), s->warm);
    return s;
}

void slab_use(SlabPool *p, Slab *s, size_t used) {
    if (used <= s->warm) return;
    budget_add(slab_payer(p, slab_class_of(s)), used - s->warm);
    s->warm = used;
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

// More are kept where requests leave memory unused: the system clears the pages of a new one, which
// takes longer than to fill them.
static bool slab_keeps(const SlabPool *p, size_t warm) {
    const Budget *b = p->budget.most > 0 || !p->budget.whole ? &p->budget : p->budget.whole;
    size_t        spare = p->spare + warm;
    if (spare <= SLAB_SPARE) return true;
    return spare <= b->most / SLAB_SPARE_PARTS && !budget_short(b, spare);
}

void slab_give(SlabPool *p, Slab *s) {
    if (!s) return;
    uint32_t class = slab_class_of(s);
    poison_fill(s->at, s->warm);
    budget_give(slab_payer(p, class), s->warm);
    if (p->n_free[class] >= SLAB_KEPT || !slab_keeps(p, s->warm)) {
        slab_free(p, s);
        return;
    }
    p->spare += s->warm;
    p->n_free[class]++;
    s->next = p->free[class];
    p->free[class] = s;
}

void slab_trim(SlabPool *p) {
    for (uint32_t class = SLAB_LEAST; class < SLAB_CLASSES; class ++) {
        for (uint32_t n = p->least[class]; n > 0; n--) slab_free(p, slab_pop(p, class));
        p->least[class] = p->n_free[class];
    }
}

SlabPool *slab_pool_new(size_t most, Budget *whole) {
    SlabPool *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    p->budget.setting = "buffered_mb";
    p->budget.most = most;
    p->budget.whole = whole;
    if (whole) p->small = (Budget){.setting = "buffered_mb", .whole = whole->whole};
    return p;
}

void slab_pool_close(SlabPool *p) {
    if (!p) return;
    for (uint32_t class = SLAB_LEAST; class < SLAB_CLASSES; class ++)
        while (p->free[class]) slab_free(p, slab_pop(p, class));
    while (slab_sweep(p)) {
    }
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
