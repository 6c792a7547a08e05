// Slab: pooled buffers for bodies, accounted by the bytes that were touched.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/exchange.h"

enum { SLAB_CLASSES = 40 };

typedef struct Slab {
    unsigned char   *at;  // on a multiple of 64
    size_t           size;
    size_t           warm;  // bytes that were ever touched
    struct Slab     *next;
    ExchangeBody     lent;
    struct SlabPool *pool;  // owner, while the slab is lent
} Slab;

typedef struct SlabPool {
    size_t most,
        held;        // touched bytes of slabs in use, so that a declared length alone costs nothing
    size_t   spare;  // bytes in free slabs
    Slab    *free[SLAB_CLASSES];
    uint32_t n_free[SLAB_CLASSES], least[SLAB_CLASSES];  // least: since the last trim
    uint32_t n_lent;                                     // slabs that outlive their exchange
    bool     closed;                                     // freed with the last lent slab
} SlabPool;

SlabPool *slab_pool_new(size_t most);    // NULL: no memory
void      slab_pool_close(SlabPool *p);  // accepts NULL; frees all but lent slabs

// At least size bytes; NULL: no memory, or the limit is reached.
Slab *slab_take(SlabPool *p, size_t size);
// Call before writing up to used bytes; false: the limit would be exceeded.
bool  slab_touch(SlabPool *p, Slab *s, size_t used);
Slab *slab_grow(SlabPool *p, Slab *s, size_t used, size_t size);  // moves; NULL: s is as it was
void  slab_give(SlabPool *p, Slab *s);                            // accepts NULL
void  slab_trim(SlabPool *p);  // returns slabs unused since the last trim to the system
ExchangeBody *slab_lend(SlabPool *p,
                        Slab     *s);  // the pool may be closed before the slab is returned
