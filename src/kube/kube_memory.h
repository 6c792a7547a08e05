// KubeMemory: the memory and the words of one object, freed together.
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "kube/kube_words.h"

typedef struct KubeMemory {
    struct KubeBlock *blocks;  // the newest first
    KubeWords        *words;
    KubeWord        **held;  // [n]
    uint32_t          n, cap;
} KubeMemory;

void            kube_memory_init(KubeMemory *m, KubeWords *words);
void            kube_memory_finish(KubeMemory *m);  // accepts a zeroed one
void           *kube_memory_alloc(KubeMemory *m, size_t count, size_t size);  // zeroed
char           *kube_memory_text(KubeMemory *m, const char *text);            // a copy; NULL: NULL
char           *kube_memory_printf(KubeMemory *m, const char *fmt, ...) PRINTF(2, 3);
const KubeWord *kube_memory_word(KubeMemory *m, const char *text);  // NULL: NULL

#define kube_memory_new(m, T, n) ((T *)kube_memory_alloc((m), (n), sizeof(T)))
