#include "kube/kube_words.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/err.h"

// Names come from tenants: a random seed per process prevents chosen collisions.
static uint64_t seed(void) {
    static _Atomic uint64_t kept;
    uint64_t                s = kept;
    if (s != 0) return s;
    if (getrandom(&s, sizeof s, GRND_NONBLOCK) != (ssize_t)sizeof s) s = 0;
    uint64_t none = 0;
    (void)atomic_compare_exchange_strong(&kept, &none, s | 1);
    return kept;
}

uint32_t kube_hash(const char *text) {
    uint64_t h = seed();
    for (; *text != '\0'; text++) {
        h = (h ^ (unsigned char)*text) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 32;
    }
    return (uint32_t)(h ^ h >> 29);
}

void kube_words_init(KubeWords *w) {
    *w = (KubeWords){.cap = 256};
    w->slots = calloc(w->cap, sizeof(KubeWord *));
    CHECK(w->slots != NULL);
}

void kube_words_finish(KubeWords *w) {
    for (uint32_t i = 0; i < w->cap; i++)
        for (KubeWord *x = w->slots[i], *next; x != NULL; x = next) {
            next = x->next;
            free(x);
        }
    free(w->slots);
    *w = (KubeWords){0};
}

static void resize(KubeWords *w, uint32_t cap) {
    KubeWord **slots = calloc(cap, sizeof(KubeWord *));
    CHECK(slots != NULL);
    for (uint32_t i = 0; i < w->cap; i++)
        for (KubeWord *x = w->slots[i], *next; x != NULL; x = next) {
            next = x->next;
            x->next = slots[x->hash & (cap - 1)];
            slots[x->hash & (cap - 1)] = x;
        }
    free(w->slots);
    w->slots = slots;
    w->cap = cap;
}

static KubeWord *find(const KubeWords *w, const char *text, uint32_t hash) {
    KubeWord *x = w->slots[hash & (w->cap - 1)];
    while (x != NULL && (x->hash != hash || strcmp(x->text, text) != 0)) x = x->next;
    return x;
}

const KubeWord *kube_words_find(const KubeWords *w, const char *text) {
    return find(w, text, kube_hash(text));
}

KubeWord *kube_words_take(KubeWords *w, const char *text) {
    uint32_t  hash = kube_hash(text);
    KubeWord *x = find(w, text, hash);
    if (x == NULL) {
        size_t len = strlen(text) + 1;
        if (w->n >= w->cap) resize(w, 2 * w->cap);
        x = malloc(sizeof *x + len);
        CHECK(x != NULL);
        *x = (KubeWord){.next = w->slots[hash & (w->cap - 1)], .hash = hash};
        memcpy(x->text, text, len);
        w->slots[hash & (w->cap - 1)] = x;
        w->n++;
    }
    x->holders++;
    return x;
}

void kube_words_drop(KubeWords *w, KubeWord *x) {
    if (--x->holders > 0) return;
    KubeWord **at = &w->slots[x->hash & (w->cap - 1)];
    while (*at != x) at = &(*at)->next;
    *at = x->next;
    w->n--;
    free(x);
}
