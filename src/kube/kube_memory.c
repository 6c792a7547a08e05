#include "kube/kube_memory.h"

#include <stdarg.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 768 };

struct KubeBlock {
    struct KubeBlock *before;
    size_t            used, cap;
    alignas(max_align_t) char bytes[];
};

void kube_memory_init(KubeMemory *m, KubeWords *words) { *m = (KubeMemory){.words = words}; }

void kube_memory_finish(KubeMemory *m) {
    for (uint32_t i = 0; i < m->n; i++) kube_words_drop(m->words, m->held[i]);
    free(m->held);
    for (struct KubeBlock *b = m->blocks, *before; b != NULL; b = before) {
        before = b->before;
        free(b);
    }
    *m = (KubeMemory){.words = m->words};
}

static void *take(KubeMemory *m, size_t bytes, size_t align) {
    struct KubeBlock *b = m->blocks;
    size_t            from = b != NULL ? (b->used + align - 1) & ~(align - 1) : 0;
    if (b == NULL || from > b->cap || bytes > b->cap - from) {
        size_t cap = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
        b = calloc(1, sizeof *b + cap);
        CHECK(b != NULL);
        b->before = m->blocks;
        b->cap = cap;
        m->blocks = b;
        from = 0;
    }
    b->used = from + bytes;
    return b->bytes + from;
}

void *kube_memory_alloc(KubeMemory *m, size_t count, size_t size) {
    size_t bytes = 0;
    CHECK(!__builtin_mul_overflow(count, size, &bytes));
    return take(m, bytes, alignof(max_align_t));
}

char *kube_memory_text(KubeMemory *m, const char *text) {
    if (text == NULL) return NULL;
    size_t len = strlen(text) + 1;
    return memcpy(take(m, len, 1), text, len);
}

char *kube_memory_printf(KubeMemory *m, const char *fmt, ...) {
    char    text[512];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return kube_memory_text(m, text);
}

const KubeWord *kube_memory_word(KubeMemory *m, const char *text) {
    if (text == NULL) return NULL;
    if (m->n == m->cap) {
        m->cap = m->cap == 0 ? 16 : 2 * m->cap;
        m->held = realloc(m->held, m->cap * sizeof(KubeWord *));
        CHECK(m->held != NULL);
    }
    return m->held[m->n++] = kube_words_take(m->words, text);
}
