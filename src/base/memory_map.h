// MemoryMap: zeroed memory from the system. It goes back in pieces, so that no thread holds the
// lock of the address space for long: all others need it.
#pragma once

#include <stddef.h>

void *memory_map_make(size_t bytes);  // NULL: errno says why
void  memory_map_drop(void *p, size_t bytes);
