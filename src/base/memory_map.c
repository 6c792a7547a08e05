#include "base/memory_map.h"

#include <errno.h>
#include <sys/mman.h>

#include "base/err.h"

enum { PIECE = 8 << 20 };  // bytes

void *memory_map_make(size_t bytes) {
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    return p != MAP_FAILED ? p : NULL;
}

// munmap can fail with ENOMEM at the mapping limit; the pages are freed all the same.
static void drop_piece(char *p, size_t bytes) {
    if (munmap(p, bytes) == 0) return;
    CHECK(errno == ENOMEM);
    (void)madvise(p, bytes, MADV_DONTNEED);
}

// From the end, so that the rest stays one mapping.
void memory_map_drop(void *p, size_t bytes) {
    while (bytes > PIECE) {
        size_t keep = (bytes - 1) / PIECE * PIECE;
        drop_piece((char *)p + keep, bytes - keep);
        bytes = keep;
    }
    drop_piece(p, bytes);
}
