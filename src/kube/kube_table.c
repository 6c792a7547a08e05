#include "kube/kube_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "kube/kube_words.h"

void kube_table_init(KubeTable *t) {
    *t = (KubeTable){.cap = 64};
    t->slots = calloc(t->cap, sizeof(KubeEntry *));
    CHECK(t->slots != NULL);
}

void kube_table_finish(KubeTable *t) {
    free(t->slots);
    free(t->all);
    *t = (KubeTable){0};
}

KubeEntry *kube_table_find(const KubeTable *t, const char *key) {
    uint32_t   hash = kube_hash(key);
    KubeEntry *e = t->slots[hash & (t->cap - 1)];
    while (e != NULL && (e->hash != hash || strcmp(e->key, key) != 0)) e = e->next;
    return e;
}

static void link(KubeTable *t, KubeEntry *e) {
    KubeEntry **slot = &t->slots[e->hash & (t->cap - 1)];
    e->next = *slot;
    *slot = e;
}

static void resize(KubeTable *t, uint32_t cap) {
    free(t->slots);
    t->slots = calloc(cap, sizeof(KubeEntry *));
    CHECK(t->slots != NULL);
    t->cap = cap;
    for (uint32_t i = 0; i < t->n; i++) link(t, t->all[i]);
}

void kube_table_add(KubeTable *t, KubeEntry *e) {
    if (t->n >= t->cap) resize(t, 2 * t->cap);
    if (t->n == t->room) {
        t->room = t->room == 0 ? 64 : 2 * t->room;
        t->all = realloc(t->all, t->room * sizeof(KubeEntry *));
        CHECK(t->all != NULL);
    }
    e->hash = kube_hash(e->key);
    e->epoch = t->epoch;
    e->at = t->n;
    t->all[t->n++] = e;
    link(t, e);
}

void kube_table_remove(KubeTable *t, KubeEntry *e) {
    KubeEntry **slot = &t->slots[e->hash & (t->cap - 1)];
    while (*slot != e) slot = &(*slot)->next;
    *slot = e->next;
    t->all[e->at] = t->all[--t->n];
    t->all[e->at]->at = e->at;
}
