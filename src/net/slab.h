// Slab: memory for bodies that is used again while it is warm, counted by what was touched.
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
    struct SlabPool *pool;  // that it is given back to, while it is lent
} Slab;

typedef struct SlabPool {
    size_t most, held;  // bytes that are lent: touched ones count, so a mere promise costs nothing
    size_t spare;       // bytes that wait
    Slab  *free[SLAB_CLASSES];
    uint32_t n_free[SLAB_CLASSES], least[SLAB_CLASSES];  // least: since the last trim
    uint32_t n_lent;                                     // to somebody who outlives an exchange
    bool     closed;                                     // it goes with the last that is lent
} SlabPool;

SlabPool *slab_pool_new(size_t most);    // NULL: no memory
void      slab_pool_close(SlabPool *p);  // accepts NULL; all are given back but those lent

// size bytes or more; NULL: no memory, or most is held.
Slab *slab_take(SlabPool *p, size_t size);
// Before bytes up to used are written; false: most would be held.
bool  slab_touch(SlabPool *p, Slab *s, size_t used);
Slab *slab_grow(SlabPool *p, Slab *s, size_t used, size_t size);  // moves; NULL: s is as it was
void  slab_give(SlabPool *p, Slab *s);                            // accepts NULL
void  slab_trim(SlabPool *p);  // what nobody needed since the last time goes back to the system
ExchangeBody *slab_lend(SlabPool *p, Slab *s);  // the pool may be closed before it comes back
