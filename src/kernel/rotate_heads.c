#include "kernel/rotate_heads.h"

#include "kernel/blocking.h"

uint32_t rotate_heads_tasks(const RotateShape *s) {
    return checked_tasks((uint64_t)s->batch * s->length);
}

uint32_t cache_append_tasks(const CacheAppend *a) {
    return checked_tasks((uint64_t)a->batch * a->heads);
}
