// Slab: pooled buffers for bodies, accounted by the bytes that were touched.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/budget.h"
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
    Budget   small;   // the same of small slabs, which may use the reserve: the whole's whole
    Budget   budget;  // touched bytes of slabs in use: a declared length alone costs nothing
    size_t   spare;   // bytes in free slabs
    Slab    *free[SLAB_CLASSES];
    uint32_t n_free[SLAB_CLASSES], least[SLAB_CLASSES];  // least: since the last trim
    Slab    *leaving;                                    // being returned to the system
    uint32_t n_lent;                                     // slabs that outlive their exchange
    bool     closed;                                     // freed with the last lent slab
} SlabPool;

// most: bytes, 0: no limit; whole: the budget that it is part of. NULL: no memory.
SlabPool *slab_pool_new(size_t most, Budget *whole);
void      slab_pool_close(SlabPool *p);  // accepts NULL; frees all but lent slabs

// At least size bytes; NULL: no memory, or the limit is reached.
Slab *slab_take(SlabPool *p, size_t size);
// Call before writing up to used bytes; false: the limit would be exceeded.
bool slab_touch(SlabPool *p, Slab *s, size_t used);
// The same for small buffers that the number of connections bounds: never refused.
Slab *slab_need(SlabPool *p, size_t size);  // NULL: no memory
void  slab_use(SlabPool *p, Slab *s, size_t used);
Slab *slab_grow(SlabPool *p, Slab *s, size_t used, size_t size);  // moves; NULL: s is as it was
void  slab_give(SlabPool *p, Slab *s);                            // accepts NULL
void  slab_trim(SlabPool *p);   // returns slabs unused since the last trim to the system
bool  slab_sweep(SlabPool *p);  // returns a piece of a large one; false: there is no more
ExchangeBody *slab_lend(SlabPool *p,
                        Slab     *s);  // the pool may be closed before the slab is returned
