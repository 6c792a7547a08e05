// ValuePool: memory of the many or large values of one run of the interpreter. It is mapped in
// slabs and returned to the system with the run: the heaps of threads keep what is freed, and each
// mapping takes a lock that all threads of the process need.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    VALUE_SLAB = 2 << 20,       // bytes, one huge page
    VALUE_BLOCK_MAX = 1 << 20,  // bytes of the largest block of a slab
    VALUE_CLASSES = 27,         // 128 B, 192 B, 256 B, 384 B, ... 1 MiB
};

typedef struct ValueSlab ValueSlab;

typedef struct ValuePool {           // zeroed: empty
    ValueSlab *open[VALUE_CLASSES];  // slabs with free blocks, by size of the blocks
    ValueSlab *spare;                // without blocks in use
} ValuePool;

// A block, zeroed, of at least that many bytes, at most VALUE_BLOCK_MAX; aligned to 64. NULL: there
// is none, value_pool_add adds a slab for it.
void *value_pool_take(ValuePool *p, size_t bytes, ValueSlab **from);
bool  value_pool_add(ValuePool *p);  // false: the system has no memory
// Returns the bytes that went back to the system: the pool keeps one slab if `keep`.
size_t value_slab_give(ValueSlab *s, void *block, bool keep);

// Memory of its own for a large value, zeroed, of a multiple of the page size; NULL: the system has
// none. A run that is told to stop may get memory that is not.
void *value_map(size_t room);
void  value_unmap(void *data, size_t room);

// Returns memory that no value uses to the system; its size.
size_t value_pool_trim(ValuePool *p);
