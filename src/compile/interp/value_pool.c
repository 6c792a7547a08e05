#include "compile/interp/value_pool.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/err.h"
#include "base/memory_map.h"
#include "base/warm_memory.h"
#include "base/work_stop.h"

enum { LEAST = 128, HUGE_MIN = 4 << 20, PIECE = 1 << 18 };  // bytes

struct ValueSlab {
    ValuePool *pool;
    ValueSlab *next, *before;  // in the list of open slabs of its class
    char      *base;
    void      *freed;      // list of blocks
    uint32_t   of;         // class
    uint32_t   live, cut;  // blocks in use, blocks ever used since it has this class
    bool       open;       // in the list
    size_t     high;       // bytes that may not be zero
};

static size_t class_bytes(uint32_t of) {
    return (of % 2 == 0 ? (size_t)LEAST : (size_t)LEAST * 3 / 2) << of / 2;
}

static uint32_t class_of(size_t bytes) {
    uint32_t of = 0;
    while (class_bytes(of) < bytes) of++;
    return of;
}

// Aligned to its size, for one huge page.
static char *map_slab(void) {
    char *p = memory_map_make((size_t)2 * VALUE_SLAB);
    if (p == NULL) return NULL;
    size_t before = (VALUE_SLAB - (uintptr_t)p % VALUE_SLAB) % VALUE_SLAB;
    if (before > 0) memory_map_drop(p, before);
    memory_map_drop(p + before + VALUE_SLAB, VALUE_SLAB - before);
    (void)madvise(p + before, VALUE_SLAB, MADV_HUGEPAGE);
    return p + before;
}

static void drop_slab(ValueSlab *s) {
    memory_map_drop(s->base, VALUE_SLAB);
    free(s);
}

bool value_pool_add(ValuePool *p) {
    CHECK(p->spare == NULL);
    ValueSlab *s = calloc(1, sizeof *s);
    if (s != NULL) s->base = map_slab();
    if (s == NULL || s->base == NULL) {
        free(s);
        return false;
    }
    s->pool = p;
    p->spare = s;
    return true;
}

static void put_open(ValuePool *p, ValueSlab *s) {
    s->before = NULL;
    s->next = p->open[s->of];
    if (s->next != NULL) s->next->before = s;
    p->open[s->of] = s;
    s->open = true;
}

static void leave_open(ValuePool *p, ValueSlab *s) {
    if (s->before != NULL)
        s->before->next = s->next;
    else
        p->open[s->of] = s->next;
    if (s->next != NULL) s->next->before = s->before;
    s->open = false;
}

static ValueSlab *find_slab(ValuePool *p, uint32_t of) {
    ValueSlab *s = p->open[of];
    if (s != NULL || p->spare == NULL) return s;
    s = p->spare;
    p->spare = NULL;
    s->of = of;
    s->cut = 0;
    s->freed = NULL;
    put_open(p, s);
    return s;
}

static void *cut_block(ValueSlab *s, size_t room, size_t bytes) {
    size_t at = s->cut++ * room, end = at + bytes;
    if (at < s->high) memset(s->base + at, 0, end < s->high ? bytes : s->high - at);
    if (at + room > s->high) s->high = at + room;
    return s->base + at;
}

static void *reuse_block(ValueSlab *s, size_t bytes) {
    void *block = s->freed;
    memcpy(&s->freed, block, sizeof s->freed);
    memset(block, 0, bytes);
    return block;
}

void *value_pool_take(ValuePool *p, size_t bytes, ValueSlab **from) {
    CHECK(bytes <= VALUE_BLOCK_MAX);
    uint32_t   of = class_of(bytes);
    size_t     room = class_bytes(of);
    ValueSlab *s = find_slab(p, of);
    if (s == NULL) return NULL;
    void *block = s->freed != NULL ? reuse_block(s, bytes) : cut_block(s, room, bytes);
    s->live++;
    if (s->freed == NULL && (s->cut + 1) * room > VALUE_SLAB) leave_open(p, s);
    *from = s;
    return block;
}

size_t value_slab_give(ValueSlab *s, void *block, bool keep) {
    ValuePool *p = s->pool;
    memcpy(block, &s->freed, sizeof s->freed);
    s->freed = block;
    if (!s->open) put_open(p, s);
    if (--s->live > 0) return 0;
    leave_open(p, s);
    if (keep && p->spare == NULL) {
        p->spare = s;
        return 0;
    }
    drop_slab(s);
    return VALUE_SLAB;
}

static void clear(char *data, size_t bytes) {
    for (size_t at = 0; at < bytes && !work_stopped(); at += PIECE)
        memset(data + at, 0, bytes - at < PIECE ? bytes - at : PIECE);
}

// Huge pages: fewer page faults.
void *value_map(size_t room) {
    void *data = warm_memory_take(room);
    if (data != NULL) {
        clear(data, room);
        return data;
    }
    data = memory_map_make(room);
    if (data != NULL && room >= HUGE_MIN) (void)madvise(data, room, MADV_HUGEPAGE);
    return data;
}

void value_unmap(void *data, size_t room) {
    if (!warm_memory_give(data, room)) memory_map_drop(data, room);
}

size_t value_pool_trim(ValuePool *p) {
    if (p->spare == NULL) return 0;
    drop_slab(p->spare);
    p->spare = NULL;
    return VALUE_SLAB;
}
