// WarmMemory: address ranges that are not in use but still have their pages, for the next large
// value. The system clears each page of a new mapping, which takes longer than to fill it. Kept
// memory counts in a budget and leaves it for whatever else needs it.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/budget.h"

// Keeps memory while the budget has room for it, at most three quarters; NULL, as in the beginning:
// up to 48 MiB. What was kept goes back to the system. Only while no other thread uses either.
void warm_memory_use(Budget *b);

// A range of that many bytes with arbitrary contents, a multiple of the page size; NULL: none.
void *warm_memory_take(size_t bytes);
// False: it is not kept, the caller unmaps it.
bool   warm_memory_give(void *p, size_t bytes);
size_t warm_memory_bytes(void);  // kept now
// Returns what was not used since the last call to the system.
void warm_memory_age(void);
