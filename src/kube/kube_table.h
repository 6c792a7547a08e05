// KubeTable: the objects of one collection by key, with mark and sweep for relists.
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct KubeEntry {  // the first member of an object
    struct KubeEntry *next;
    const char       *key;  // the object's; "NAMESPACE/NAME", or "NAME" without a namespace
    uint32_t          hash, at;
    uint64_t          epoch;    // of the list that it was last in
    const char       *version;  // resourceVersion, if it tells that nothing changed; else NULL
} KubeEntry;

typedef struct KubeTable {
    KubeEntry **slots;  // [cap], a power of 2
    KubeEntry **all;    // [n], in any order
    uint32_t    cap, n, room;
    uint64_t    epoch;
} KubeTable;

void       kube_table_init(KubeTable *t);
void       kube_table_finish(KubeTable *t);                       // objects are the caller's
KubeEntry *kube_table_find(const KubeTable *t, const char *key);  // NULL: absent
void       kube_table_add(KubeTable *t, KubeEntry *e);  // of the current epoch; no such key yet
void       kube_table_remove(KubeTable *t, KubeEntry *e);
